import Synchronization

/// Whether a process that ends connects no more, because the network swallows what it sends.
///
/// An end has some seconds, of which each attempt takes as many for each host; a server that
/// refuses connections, as one that restarts, answers at once and is tried as ever.
final class ConnectingEnd: Sendable {
    private struct State {
        var isExpected = false
        var isSwallowed = false
    }

    private let state = Mutex(State())

    /// What takes longer to fail was not answered.
    private static let longest = Duration.seconds(2)

    /// Whether the process ends.
    var isExpected: Bool { state.withLock { $0.isExpected } }

    /// Whether nothing is tried any more.
    var hasCome: Bool { state.withLock { $0.isExpected && $0.isSwallowed } }

    /// Says that the process ends.
    func expect() { state.withLock { $0.isExpected = true } }

    /// Notes how long an attempt took that failed; `nil` of one that did not.
    func note(failedAfter time: Duration?) {
        state.withLock { $0.isSwallowed = time.map { $0 > Self.longest } ?? false }
    }
}
