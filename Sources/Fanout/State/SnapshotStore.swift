import Dispatch
package import Logging
package import RelayModel
package import Storage
import Synchronization

/// Writes snapshots of the follower's state beside the store, and finds the one to begin with.
///
/// A snapshot is valid once the store has recorded it, which happens when the progress has reached
/// its position: a start always begins at the progress. Then the file of the previous snapshot is
/// removed.
///
/// Concurrency: the follower offers images, and one loop writes them. A lock protects the state
/// that they share. One image is handled at a time. Life: `run` until cancelled, then `finish`
/// once.
package final class SnapshotStore: Sendable {
    /// The settings of snapshots.
    package struct Settings: Sendable {
        /// The beginning of the paths of the files.
        package var stem: String
        /// The shortest time between two snapshots.
        package var interval: Duration

        package init(stem: String, interval: Duration) {
            self.stem = stem
            self.interval = interval
        }
    }

    private struct State {
        var isBusy = false
        var dueAt: Timestamp?
        var waiting: StateImage?
        var written: (record: SnapshotRecord, path: String)?
        var lines = QuietLines<String>(pause: SnapshotStore.silence)
    }

    /// The divisor of the number of entries that gives the number of edits that make a snapshot
    /// worthwhile: 2 % of the state.
    private static let worthwhileShare = 50
    /// The time between two looks for an image or for the progress.
    private static let pause = Duration.milliseconds(200)
    /// The shortest time between two warnings that the store cannot record a snapshot.
    ///
    /// Each look tries again, and a database may be away for hours.
    private static let silence = Duration.seconds(60)

    private let settings: Settings
    private let storeIdentity: UUIDBytes
    private let store: any StateSnapshots
    private let now: @Sendable () -> Timestamp
    let clock: any Clock<Duration>
    private let makeIdentity: @Sendable () -> UUIDBytes
    private let logger: Logger
    private let meter = SnapshotMeter()
    private let state = Mutex(State())

    package init(
        _ settings: Settings, storeIdentity: UUIDBytes, store: any StateSnapshots,
        now: @escaping @Sendable () -> Timestamp, clock: any Clock<Duration>,
        makeIdentity: @escaping @Sendable () -> UUIDBytes, logger: Logger
    ) {
        self.settings = settings
        self.storeIdentity = storeIdentity
        self.store = store
        self.now = now
        self.clock = clock
        self.makeIdentity = makeIdentity
        self.logger = logger
    }

    // MARK: Beginning

    /// Fills `shard` from the snapshot that the store has recorded, and returns its position.
    ///
    /// A snapshot that is missing, damaged, of another version or ahead of the progress is logged
    /// as a warning, forgotten and removed. Then `shard` is unchanged, and the result is `nil`.
    func load(_ shard: inout ShardState, upTo mark: LogPosition) async throws -> LogPosition? {
        let patience = StorePatience(clock: clock) { [logger] error in
            logger.error(
                "cannot look up the snapshot; trying again", metadata: ["reason": "\(error)"])
        }
        let record = try await patience.attempt { try await store.recordedSnapshot() }
        SnapshotFile.removeAll(
            stem: settings.stem, except: record.map { path(of: $0.identity) })
        guard let record else { return nil }
        do {
            guard record.position <= mark else {
                throw SnapshotFailure("its position is ahead of the progress")
            }
            let path = path(of: record.identity)
            guard let file = try SnapshotFile.Reading(path) else {
                throw SnapshotFailure("its file does not exist")
            }
            try StateImage.load(&shard, from: file, record, store: storeIdentity)
            state.withLock { $0.dueAt = now().advanced(by: settings.interval) }
            return record.position
        } catch {
            logger.warning(
                "ignored the snapshot; the state is loaded from the registry",
                metadata: ["reason": "\(error)"])
            meter.countIgnored()
            do {
                try await store.forgetSnapshot()
            } catch let error as StorageError where error.passes {
                // The next start ignores it again.
            }
            SnapshotFile.removeAll(stem: settings.stem, except: nil)
            return nil
        }
    }

    /// Postpones the first snapshot by the usual interval, after a start that needed none.
    func postpone() {
        state.withLock { $0.dueAt = now().advanced(by: settings.interval) }
    }

    // MARK: Offering

    /// Returns whether a snapshot is due, after `edits` edits of a state of `entries` entries.
    func isDue(edits: Int, of entries: Int) -> Bool {
        guard isWorthwhile(edits: edits, of: entries) else { return false }
        return state.withLock { state in
            !state.isBusy && rest(until: state.dueAt) == nil
        }
    }

    /// Returns how long it is until `dueAt`.
    ///
    /// Returns `nil` if that is past. Also returns `nil` if it is further away than the interval
    /// between snapshots, because then the clock was set back.
    private func rest(until dueAt: Timestamp?) -> Duration? {
        guard let wait = dueAt?.duration(since: now()) else { return nil }
        return wait > .zero && wait <= settings.interval ? wait : nil
    }

    /// Returns whether `edits` edits of a state of `entries` entries are worth a snapshot.
    func isWorthwhile(edits: Int, of entries: Int) -> Bool {
        edits > 0 && edits >= entries / Self.worthwhileShare
    }

    /// Waits until the next snapshot may be due.
    func waitUntilDue() async throws {
        while true {
            let wait = state.withLock { state -> Duration? in
                if state.isBusy { return Self.pause }
                return rest(until: state.dueAt).map { max(Self.pause, $0) }
            }
            guard let wait else { return }
            try await clock.sleep(for: wait)
        }
    }

    /// Takes an image to be written.
    ///
    /// `pause` is the time that making it took.
    package func take(_ image: StateImage, pause: Duration) {
        meter.show(pause: pause)
        state.withLock { state in
            state.isBusy = true
            state.waiting = image
        }
    }

    // MARK: Writing

    /// Writes the images that are offered, and records each in the store once `progress` has
    /// reached it, until the task is cancelled.
    package func run(progress: @Sendable () -> LogPosition) async throws {
        while true {
            try await clock.sleep(for: Self.pause)
            try await work(progress: progress())
        }
    }

    /// Writes the image that is offered, and records what is written once `progress` has reached
    /// it.
    package func work(progress: LogPosition) async throws {
        if let image = state.withLock({ state in state.waiting.take() }) {
            await write(image)
        }
        try await publish(upTo: progress)
    }

    /// Writes the last image, if there is one, and records what is written if the progress has
    /// reached it.
    ///
    /// Removes the rest.
    package func finish(_ image: StateImage?, progress: LogPosition) async throws {
        if let image, image.position <= progress { await write(image) }
        try await publish(upTo: progress)
        let left = state.withLock { state in state.written.take() }
        if let left { SnapshotFile.removeAll(stem: left.path, except: nil) }
    }

    private func path(of identity: UUIDBytes) -> String { "\(settings.stem)\(identity)" }

    private func write(_ image: StateImage) async {
        let record = SnapshotRecord(
            identity: makeIdentity(), position: image.position, savedAt: now())
        let path = path(of: record.identity)
        let store = storeIdentity
        // Writing a file blocks, and there are few threads for tasks.
        let outcome = await withCheckedContinuation { continuation in
            DispatchQueue.global(qos: .utility).async {
                continuation.resume(
                    returning: Result {
                        let sections = image.sections(identity: record.identity, store: store)
                        try SnapshotFile.write(sections, to: path)
                    })
            }
        }
        switch outcome {
        case .success:
            let before = state.withLock { state in
                defer { state.written = (record, path) }
                return state.written
            }
            if let before { SnapshotFile.removeAll(stem: before.path, except: nil) }
        case .failure(let error):
            logger.warning("could not write a snapshot", metadata: ["reason": "\(error)"])
            meter.countFailed()
            state.withLock { state in
                state.isBusy = false
                state.dueAt = now().advanced(by: settings.interval)
            }
        }
    }

    private func publish(upTo progress: LogPosition) async throws {
        guard let written = state.withLock({ $0.written }), written.record.position <= progress
        else { return }
        do {
            if case .outdated(let pruned) = try await store.record(written.record) {
                return discard(written, prunedTo: pruned)
            }
        } catch let error as StorageError {
            let moment = Duration.seconds(now().seconds)
            let unlogged = state.withLock { $0.lines.take("record", at: moment) }
            guard let unlogged else { return }
            logger.warning(
                "could not record a snapshot",
                metadata: [
                    "reason": "\(error)", "unloggedBefore": .stringConvertible(unlogged),
                ])
            return
        }
        SnapshotFile.removeAll(stem: settings.stem, except: written.path)
        meter.show(bytes: SnapshotFile.size(of: written.path), at: written.record.position)
        logger.info(
            "saved a snapshot",
            metadata: [
                "position": "\(written.record.position)",
                "bytes": .stringConvertible(SnapshotFile.size(of: written.path)),
            ])
        state.withLock { state in
            state.written = nil
            state.isBusy = false
            state.dueAt = now().advanced(by: settings.interval)
        }
    }

    /// Discards a snapshot whose later endings were already pruned.
    ///
    /// The next one may be taken at once.
    private func discard(
        _ written: (record: SnapshotRecord, path: String), prunedTo pruned: LogPosition
    ) {
        logger.info(
            "discarded a snapshot: later endings of subscriptions and devices are already pruned",
            metadata: ["position": "\(written.record.position)", "pruned": "\(pruned)"])
        SnapshotFile.removeAll(stem: written.path, except: nil)
        state.withLock { state in
            state.written = nil
            state.isBusy = false
        }
    }
}
