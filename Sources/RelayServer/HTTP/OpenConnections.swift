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
    private let isUrgent: Bool
    private let clock: any Clock<Duration>
    private let logger: Logger

    /// Creates the list before there is a connection.
    ///
    /// What is not closed after `grace` is closed then. Where an end `isUrgent`, because another
    /// relay goes on after it, no slow client keeps it waiting for that long.
    init(grace: Duration, isUrgent: Bool, clock: any Clock<Duration>, logger: Logger) {
        self.grace = grace
        self.isUrgent = isUrgent
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

    /// Tells a connection, again and again, that the end goes on and it is there still.
    struct LateHour: Sendable {
        /// Whether somebody waits for the end.
        let isUrgent: Bool
    }

    /// How often connections are told: half of what a hand-over may take.
    private static let pause = Duration.milliseconds(250)

    private var all: [any Channel] { state.withLock { Array($0.channels.values) } }

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
