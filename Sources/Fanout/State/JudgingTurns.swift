package import RelayModel
import Synchronization

/// Keeps edits of an index apart from long judgements by it, so that no edit blocks a thread that
/// others need.
///
/// Reading an index keeps edits out, for microseconds, or for much longer if conditions are dear. A
/// task that wants to edit waits here without a thread until the current judgement ends. The next
/// judgement waits for the edits that were let in then, and for no later ones.
///
/// Concurrency: a lock around values. No callback runs while it is held.
final class JudgingTurns: Sendable {
    private struct Turn {
        /// Whether a change is being judged, or will be next.
        var isJudging = false
        /// Starts the judgement that waits for the current edits.
        var next: (@Sendable () -> Void)?
        var edits = 0
        var waiting: [CheckedContinuation<Void, Never>] = []

        var isIdle: Bool { !isJudging && next == nil && edits == 0 && waiting.isEmpty }
    }

    private let turns = Mutex<[ContainerKey: Turn]>([:])

    /// Returns whether a change of a container is in a long judgement.
    func isJudging(_ container: ContainerKey) -> Bool {
        turns.withLock { $0[container]?.isJudging ?? false }
    }

    // MARK: Edits

    /// Runs an edit, which must be short, while there is no long judgement.
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

    /// Begins a judgement if it may begin now.
    ///
    /// Otherwise `again` is called once it may. Returns whether it began.
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

    /// Ends a judgement, and lets the waiting edits in.
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
    /// Runs a body that edits the index of a container, or weighs conditions by it, while there is
    /// no long judgement by that index.
    ///
    /// Otherwise the body would block a thread of the pool that all tasks share.
    ///
    /// `body` must be short.
    package func whenFree<Value>(
        _ container: ContainerKey, _ body: () async throws -> Value
    ) async rethrows -> Value {
        try await turns.edit(container, body)
    }
}
