import Synchronization

/// Whether an ending process stops connecting, because the network drops its packets.
///
/// A process has only some seconds to end, and an attempt can take as long for each host. A server
/// that refuses connections, such as one that is restarting, answers at once and is still tried.
final class ConnectingEnd: Sendable {
    private struct State {
        var isExpected = false
        var isSwallowed = false
    }

    private let state = Mutex(State())

    /// An attempt that fails after a longer time got no answer.
    private static let longest = Duration.seconds(2)

    /// Whether the process is ending.
    var isExpected: Bool { state.withLock { $0.isExpected } }

    /// Whether no further attempt is made.
    var hasCome: Bool { state.withLock { $0.isExpected && $0.isSwallowed } }

    /// Records that the process is ending.
    func expect() { state.withLock { $0.isExpected = true } }

    /// Records after how long an attempt failed; `nil` for an attempt that succeeded.
    func note(failedAfter time: Duration?) {
        state.withLock { $0.isSwallowed = time.map { $0 > Self.longest } ?? false }
    }
}
