import RelayModel
import Synchronization

/// Bounds what waits to be taken by all connected clients together.
///
/// A poll may leave 32 MiB untaken, as may a socket of what it is told when it comes back, and one
/// user has fifty: so many would fill the memory.
/// Beyond the bound somebody ends, of the container for which most waits, in it of the user, and of
/// that user's streams the longest: nobody pays for what others leave untaken.
///
/// Concurrency: a lock around numbers; nobody is called while it is held.
final class LiveBacklog: Sendable {
    /// Ends a stream.
    typealias End = @Sendable () -> Void

    /// Whose streams are counted together.
    struct Party: Sendable, Hashable {
        let container: ContainerKey
        let user: UserID
    }

    /// What is counted: who has less waiting is not known here, and costs nothing.
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

        /// Who ends first.
        var longest: End? {
            guard let container = containers.max(by: { $0.value < $1.value })?.key else {
                return nil
            }
            let users = parties.filter { $0.key.container == container }
            guard let party = users.max(by: { $0.value < $1.value })?.key else { return nil }
            return lines.values.filter { $0.party == party }
                .max { $0.steps < $1.steps }?.end
        }
    }

    private let most: Int
    private let state = Mutex(State())

    init(megabytes: Int = 256) {
        most = megabytes * 1024 * 1024 / Self.bytesOfStep
    }

    /// Notes how much waits for a stream.
    ///
    /// - Returns: What ends one of them, this one perhaps, if all is too much; it is to be called
    ///   with no lock held.
    func note(
        _ id: ObjectIdentifier, of party: Party, _ steps: Int, end: @escaping End
    ) -> End? {
        state.withLock { state in
            state.set(id, of: party, steps, end)
            return state.steps > most ? state.longest : nil
        }
    }

    /// How many bytes are known to wait, rounded down for each stream.
    var bytes: Int { state.withLock { $0.steps } * Self.bytesOfStep }
}
