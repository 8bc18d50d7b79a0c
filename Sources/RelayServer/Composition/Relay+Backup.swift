import FoundationEssentials
import LogShipping
import Logging
import Metrics
import RelayModel
import Storage
import StorageSQL
import StorageSQLite
import Synchronization

/// The parts that ship the store's backups, if the configuration names a place for them.
struct RelayBackup: Sendable {
    let spool: LogSpool
    let destination: any BackupDestination
    let settings: LogShipper.Settings

    /// Prepares the parts before the store is opened; `nil` if no place is configured.
    ///
    /// - Throws: ``ConfigurationError`` if a file of the settings cannot be read.
    init?(_ configuration: RelayConfiguration, world: World) throws {
        guard let place = configuration.backup.place else { return nil }
        do throws(DestinationFailure) {
            destination = try place.destination(configuration.backup.bucket, now: world.now)
        } catch {
            throw ConfigurationError(["backup: \(error)"])
        }
        if case .folder(let path) = place {
            try Self.check(path, beside: configuration.storagePath)
        }
        var bounds = configuration.backup.spool
        bounds.reserveBytes = configuration.store.diskReserveBytes
        spool = try LogSpool(of: configuration.storagePath, settings: bounds, now: world.now)
        settings = configuration.backup.shipping
    }

    /// Refuses a destination in the spool, because that would ship the segments to where they wait.
    private static func check(
        _ folder: String, beside store: String
    ) throws(ConfigurationError) {
        let spool = URL(filePath: LogSpool.folder(of: store)).standardizedFileURL.path
        guard folder == spool || folder.hasPrefix(spool + "/") else { return }
        throw ConfigurationError([
            "backup.url: \(folder) is the spool, where the log waits to be shipped; use another "
                + "folder, on another disk"
        ])
    }

    /// Creates the shipper for the open store.
    func shipper(of store: RelayStore, world: World, logger: Logger) -> LogShipper {
        LogShipper(
            store, spool: spool, to: destination, settings: settings, clock: world.clock,
            now: world.now, randomBytes: { world.randomBytes($0) }, logger: logger)
    }
}

extension Relay {
    /// Ships backups until the task is cancelled.
    func shipBackups(_ shipper: LogShipper) -> LoopService {
        LoopService { [world] in try await shipper.run(using: world.generator) }
    }

    /// Ships the rest of the log after the store was closed, for at most the grace period of the
    /// shutdown.
    func shipRest() async {
        guard let shipper else { return }
        let grace = configuration.shutdownGrace
        await withTaskGroup(of: Void.self) { [world] group in
            group.addTask { await shipper.finish() }
            group.addTask { try? await world.clock.sleep(for: grace) }
            await group.next()
            group.cancelAll()
        }
        await shipper.close()
    }
}

/// Records the state of backups as metrics.
final class BackupMeter: Sendable {
    private let interval = Gauge(label: "belfry_backup_interval_seconds")
    private let waiting = Gauge(label: "belfry_backup_waiting_bytes")
    private let segments = Counter(label: "belfry_backup_segments_total")
    private let bytes = Counter(label: "belfry_backup_bytes_total")
    private let failures = Counter(label: "belfry_backup_failures_total")
    private let ended = Counter(label: "belfry_backup_chains_ended_total")
    private let counted = Mutex<ShippingStatus?>(nil)

    /// Records a status; an age is recorded only once there is a backup to measure.
    func show(_ status: ShippingStatus, at now: Timestamp) {
        show("belfry_backup_age_seconds", since: status.shippedUntil, at: now)
        show("belfry_backup_copy_age_seconds", since: status.lastBase, at: now)
        interval.record(status.interval / .seconds(1))
        waiting.record(status.waitingBytes)
        let before = counted.withLock { counted in
            defer { counted = status }
            return counted
                ?? ShippingStatus(place: status.place, interval: status.interval)
        }
        segments.increment(by: max(0, status.shippedSegments - before.shippedSegments))
        bytes.increment(by: max(0, status.shippedBytes - before.shippedBytes))
        failures.increment(by: max(0, status.failures - before.failures))
        ended.increment(by: max(0, status.endedChains - before.endedChains))
    }

    /// Records an age; without a moment there is no gauge, because a 0 would claim a new backup.
    private func show(_ label: String, since moment: Timestamp?, at now: Timestamp) {
        guard let moment else { return }
        Gauge(label: label).record(now.duration(since: moment) / .seconds(1))
    }
}
