import RelayModel
import Synchronization

/// Bounds what all connected clients together leave untaken.
///
/// A poll may leave 32 MiB untaken, and so may a socket when it catches up. A user may have fifty
/// of them, which together would fill the memory. Beyond the bound streams end: each time the
/// longest one of the user with the most in the container with the most. So clients do not pay for
/// what others leave untaken.
///
/// Concurrency: a lock around numbers; no other code is called while it is held.
final class LiveBacklog: Sendable {
    /// Ends a stream.
    typealias End = @Sendable () -> Void

    /// The owner of streams that are counted together.
    struct Party: Sendable, Hashable {
        let container: ContainerKey
        let user: UserID
    }

    /// The unit of counting; smaller amounts are not reported, and so cost nothing.
    static let bytesOfStep = 256 * 1024

    private struct Line {
        let party: Party
        var steps: Int
        let end: End
    }

    private struct State {
        var lines: [ObjectIdentifier: Line] = [:]
        var parties: [Party: Int] = [:]
        var containers: [ContainerKey: Int] = [:]
        var steps = 0

        mutating func set(
            _ id: ObjectIdentifier, of party: Party, _ steps: Int, _ end: @escaping End
        ) {
            let change = steps - (lines[id]?.steps ?? 0)
            lines[id] = steps > 0 ? Line(party: party, steps: steps, end: end) : nil
            self.steps += change
            parties[party, default: 0] += change
            containers[party.container, default: 0] += change
            if parties[party] == 0 { parties[party] = nil }
            if containers[party.container] == 0 { containers[party.container] = nil }
        }

        /// Removes the stream that ends first, and returns its end.
        ///
        /// It no longer counts, because it ends a little later, on its own event loop. Otherwise
        /// all that is noted until then would end the same stream again, and no other.
        mutating func takeLongest() -> End? {
            guard let container = containers.max(by: { $0.value < $1.value })?.key else {
                return nil
            }
            let users = parties.filter { $0.key.container == container }
            guard let party = users.max(by: { $0.value < $1.value })?.key else { return nil }
            let longest = lines.filter { $0.value.party == party }
                .max { $0.value.steps < $1.value.steps }
            guard let (id, line) = longest else { return nil }
            set(id, of: party, 0, line.end)
            return line.end
        }
    }

    private let most: Int
    private let state = Mutex(State())

    init(megabytes: Int = 256) {
        most = megabytes * 1024 * 1024 / Self.bytesOfStep
    }

    /// Notes how much waits for a stream.
    ///
    /// - Returns: A closure that ends streams, perhaps this one too, if the total is too much; call
    ///   it without holding a lock.
    func note(
        _ id: ObjectIdentifier, of party: Party, _ steps: Int, end: @escaping End
    ) -> End? {
        let ends = state.withLock { state -> [End] in
            state.set(id, of: party, steps, end)
            var ends: [End] = []
            while state.steps > most, let end = state.takeLongest() { ends.append(end) }
            return ends
        }
        guard !ends.isEmpty else { return nil }
        return { for end in ends { end() } }
    }

    /// The number of reported bytes, rounded down for each stream.
    var bytes: Int { state.withLock { $0.steps } * Self.bytesOfStep }
}
