package import RelayModel
import Synchronization

/// Keeps edits of an index and long judgements by it apart, so that nobody who edits waits on a
/// thread that others need.
///
/// Whoever reads an index keeps edits out, which takes microseconds but for dear conditions. A task
/// that would edit waits here without a thread, until the judgement in hand ends; the next
/// judgement waits for the edits that were let in then, and for no later ones.
///
/// Concurrency: a lock around values; nobody is called while it is held.
final class JudgingTurns: Sendable {
    private struct Turn {
        /// Whether a change is judged, or is to be next.
        var isJudging = false
        /// Has the judgement begin that waits for the edits under way.
        var next: (@Sendable () -> Void)?
        var edits = 0
        var waiting: [CheckedContinuation<Void, Never>] = []

        var isIdle: Bool { !isJudging && next == nil && edits == 0 && waiting.isEmpty }
    }

    private let turns = Mutex<[ContainerKey: Turn]>([:])

    /// Whether a change of a container is judged at length.
    func isJudging(_ container: ContainerKey) -> Bool {
        turns.withLock { $0[container]?.isJudging ?? false }
    }

    // MARK: Edits

    /// Runs an edit, which must be short, while nothing is judged at length.
    func edit<Value>(
        _ container: ContainerKey, _ body: () async throws -> Value
    ) async rethrows -> Value {
        await enter(container)
        defer { leave(container) }
        return try await body()
    }

    private func enter(_ container: ContainerKey) async {
        await withCheckedContinuation { continuation in
            let isFree = turns.withLock { turns in
                var turn = turns[container] ?? Turn()
                defer { turns[container] = turn }
                if turn.isJudging || turn.next != nil {
                    turn.waiting.append(continuation)
                    return false
                }
                turn.edits += 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    private func leave(_ container: ContainerKey) {
        let next = turns.withLock { turns -> (@Sendable () -> Void)? in
            guard var turn = turns[container] else { return nil }
            defer { turns[container] = turn.isIdle ? nil : turn }
            turn.edits -= 1
            guard turn.edits == 0, let next = turn.next else { return nil }
            (turn.next, turn.isJudging) = (nil, true)
            return next
        }
        next?()
    }

    // MARK: Judgements, of which a container has one at a time

    /// Whether a judgement may begin now; if not, `again` is called once it may.
    func begin(_ container: ContainerKey, again: @escaping @Sendable () -> Void) -> Bool {
        turns.withLock { turns in
            var turn = turns[container] ?? Turn()
            defer { turns[container] = turn }
            if turn.edits > 0 {
                turn.next = again
                return false
            }
            turn.isJudging = true
            return true
        }
    }

    /// A judgement has ended.
    func end(_ container: ContainerKey) {
        let waiting = turns.withLock { turns -> [CheckedContinuation<Void, Never>] in
            guard var turn = turns[container] else { return [] }
            let waiting = turn.waiting
            turn.isJudging = false
            turn.edits += waiting.count
            turn.waiting = []
            turns[container] = turn.isIdle ? nil : turn
            return waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}

extension IndexDirectory {
    /// Runs what edits the index of a container, or weighs conditions by it, while no change is
    /// judged by it at length: it would keep a thread waiting that all tasks share.
    ///
    /// `body` must be short.
    package func whenFree<Value>(
        _ container: ContainerKey, _ body: () async throws -> Value
    ) async rethrows -> Value {
        try await turns.edit(container, body)
    }
}
