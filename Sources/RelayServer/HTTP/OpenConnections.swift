import Logging
import NIOCore
import Synchronization

/// The open connections of clients; it ensures that none of them delays an orderly end for ever.
///
/// Concurrency: connections come and go on the event loops; the end of the relay closes those that
/// are left.
final class OpenConnections: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var hasGrace = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let grace: Duration
    private let isUrgent: Bool
    private let clock: any Clock<Duration>
    private let logger: Logger

    /// Creates an empty list.
    ///
    /// Connections that are still open after `grace` are closed. If an end `isUrgent`, because
    /// another relay takes over, slow clients do not delay it for that long.
    init(grace: Duration, isUrgent: Bool, clock: any Clock<Duration>, logger: Logger) {
        self.grace = grace
        self.isUrgent = isUrgent
        self.clock = clock
        self.logger = logger
    }

    /// Closes open connections after the grace, and later ones at once.
    ///
    /// The listeners share the list; the first call begins the grace for all.
    func beginGrace() {
        let isFirst = state.withLock { state in
            defer { state.hasGrace = true }
            return !state.hasGrace
        }
        guard isFirst else { return }
        Task {
            var rest = grace
            while rest > Self.pause {
                try await clock.sleep(for: Self.pause)
                rest -= Self.pause
                for channel in all {
                    channel.pipeline.fireUserInboundEventTriggered(LateHour(isUrgent: isUrgent))
                }
            }
            try await clock.sleep(for: rest)
            closeAll()
        }
    }

    /// An event that tells an open connection, repeatedly, that the relay is ending.
    struct LateHour: Sendable {
        /// Whether another relay waits for the end.
        let isUrgent: Bool
    }

    /// How often connections get the event: half of the time that a hand-over may take.
    private static let pause = Duration.milliseconds(250)

    private var all: [any Channel] { state.withLock { Array($0.channels.values) } }

    private func closeAll() {
        let channels = state.withLock { state in
            state.isClosed = true
            return state.channels.values.map { $0 }
        }
        guard !channels.isEmpty else { return }
        logger.warning(
            "closed connections whose requests did not finish",
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
