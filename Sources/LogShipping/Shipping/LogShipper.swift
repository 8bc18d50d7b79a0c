package import Logging
package import RelayModel
import Storage
package import StorageSQL
package import StorageSQLite
import Synchronization

/// Ships copies of the store's file, and the log since then, to a destination.
///
/// It runs in one task. Failures are retried, and the writer never learns of them.
package final class LogShipper: Sendable {
    /// The settings of the shipper.
    package struct Settings: Sendable, Hashable {
        package var interval = Duration.seconds(10)
        /// The time between two copies of the file.
        package var baseInterval = Duration.seconds(24 * 3600)
        /// The number of whole copies to keep.
        package var keptBases = 7
        /// The size of a part of a copy in bytes, which limits the memory in use.
        package var partBytes = BaseManifest.maximumPart

        package init() {}
    }

    let store: RelayStore
    let spool: LogSpool
    let destination: any BackupDestination
    let settings: Settings
    let clock: any Clock<Duration>
    let now: @Sendable () -> Timestamp
    let randomBytes: @Sendable (Int) -> [UInt8]
    let logger: Logger
    private let shown: Mutex<ShippingStatus>

    package init(
        _ store: RelayStore, spool: LogSpool, to destination: any BackupDestination,
        settings: Settings, clock: any Clock<Duration>, now: @escaping @Sendable () -> Timestamp,
        randomBytes: @escaping @Sendable (Int) -> [UInt8], logger: Logger
    ) {
        self.store = store
        self.spool = spool
        self.destination = destination
        self.settings = settings
        self.clock = clock
        self.now = now
        self.randomBytes = randomBytes
        self.logger = logger
        shown = Mutex(ShippingStatus(place: destination.place, interval: settings.interval))
    }

    /// The current status.
    package var status: ShippingStatus {
        let waiting = spool.waiting.reduce(0) { $0 + $1.bytes }
        return shown.withLock { status in
            status.waitingBytes = waiting
            return status
        }
    }

    func show(_ change: (inout ShippingStatus) -> Void) { shown.withLock { change(&$0) } }

    /// Ships until the task is cancelled.
    package func run(using generator: any RandomNumberGenerator & Sendable) async throws {
        var generator = generator
        var pace = ShippingPace(interval: settings.interval)
        var round = ShippingRound(self)
        while true {
            pace.note(isDone: await attempt { try await round.run() })
            try await clock.sleep(for: pause(pace, &generator))
        }
    }

    private func pause(
        _ pace: ShippingPace, _ generator: inout some RandomNumberGenerator
    ) -> Duration {
        pace.pause(using: &generator)
    }

    /// Ships the rest of the log after the store was closed.
    package func finish() async {
        let isDone = await attempt {
            var round = ShippingRound(self)
            try await round.finish()
        }
        guard isDone, status.waitingBytes == 0 else { return }
        logger.info("shipped the end of the log", metadata: ["to": "\(destination.place)"])
    }

    /// Releases the destination's resources.
    package func close() async { await destination.close() }

    private func attempt(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            let isUnbroken = !noteEnding()
            let earlier = shown.withLock { status in
                defer { status.failure = nil }
                return status.failure
            }
            if earlier != nil {
                logger.info("backups are shipped again", metadata: ["to": "\(destination.place)"])
            }
            // After a broken chain, the next round waits as after a failure. Otherwise a
            // destination that is too slow for the copy would be asked for one copy after the
            // other.
            return isUnbroken
        } catch is CancellationError {
            return false
        } catch {
            _ = noteEnding()
            note("\(error)")
            return false
        }
    }

    private func note(_ reason: String) {
        let moment = now()
        let earlier = shown.withLock { status in
            defer { status.failure = ShippingStatus.Failure(at: moment, reason: reason) }
            status.failures += 1
            return status.failure
        }
        // The same reason is logged only once, however often the attempt fails.
        guard earlier?.reason != reason else { return }
        logger.warning(
            "a backup cannot be shipped yet",
            metadata: ["to": "\(destination.place)", "reason": "\(reason)"])
    }

    /// Reports a chain that has ended; returns whether one had.
    private func noteEnding() -> Bool {
        guard let reason = spool.takeEnding() else { return false }
        let moment = now()
        shown.withLock { status in
            status.endedChains += 1
            status.ending = ShippingStatus.Failure(at: moment, reason: reason)
        }
        logger.warning(
            "a chain of backups has ended; a new copy of the file begins another",
            metadata: ["to": "\(destination.place)", "reason": "\(reason)"])
        return true
    }
}
