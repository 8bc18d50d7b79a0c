import Logging
import NIOCore
import Synchronization

/// The connections that clients have open, so that none of them can hold an orderly end.
///
/// Concurrency: connections come and go on the event loops; whoever ends the relay closes those
/// that are left.
final class OpenConnections: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var hasGrace = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let grace: Duration
    private let clock: any Clock<Duration>
    private let logger: Logger

    /// Creates the list before there is a connection.
    init(grace: Duration, clock: any Clock<Duration>, logger: Logger) {
        self.grace = grace
        self.clock = clock
        self.logger = logger
    }

    /// Closes what is open after the grace, and whatever is opened later.
    ///
    /// The listeners share it: the first that is told begins it for all.
    func beginGrace() {
        let isFirst = state.withLock { state in
            defer { state.hasGrace = true }
            return !state.hasGrace
        }
        guard isFirst else { return }
        Task {
            try await clock.sleep(for: grace)
            closeAll()
        }
    }

    private func closeAll() {
        let channels = state.withLock { state in
            state.isClosed = true
            return state.channels.values.map { $0 }
        }
        guard !channels.isEmpty else { return }
        logger.warning(
            "closed connections whose requests did not end",
            metadata: ["count": .stringConvertible(channels.count)])
        for channel in channels { channel.close(promise: nil) }
    }

    func add(_ channel: any Channel) {
        let isClosed = state.withLock { state in
            state.channels[ObjectIdentifier(channel)] = channel
            return state.isClosed
        }
        if isClosed { channel.close(promise: nil) }
    }

    func remove(_ channel: any Channel) {
        _ = state.withLock { $0.channels.removeValue(forKey: ObjectIdentifier(channel)) }
    }
}
