import ChangeSources
import FoundationEssentials
import Logging
import Metrics
import PostgresFollowing
import RelayModel
import Storage
import Synchronization

/// Follows the databases of the sources that follow one, while the relay runs.
///
/// Each such source has its own follower, which decodes and appends within the process what a
/// webhook would bring otherwise. It starts when the source is saved, and ends with the source. It
/// starts again when the followed database is changed, or when the source is saved while the
/// follower waits because of a problem.
package final class SourceFollowers: Sendable {
    private struct Running {
        let definition: FollowDefinition
        let follower: PostgresFollower?
        let problem: FollowProblem?
        let task: Task<Void, Never>

        /// Whether a problem keeps it from following.
        var isWaiting: Bool {
            if case .waiting? = follower?.status.state { return true }
            return problem != nil
        }
    }

    private let registry: any ContainerRegistry & SourceRegistry & ListRegistry
    /// The identity of the store.
    private let store: UUIDBytes
    private let intake: ChangeIntake
    private let ledger: SourceLedger
    /// Serialises changes of a container's settings.
    ///
    /// Otherwise a note that is written here could restore a source that an operator has deleted,
    /// or its old secret.
    private let line: ReaderLine
    private let world: World
    private let logger: Logger
    private let meter: FollowMeter
    private let sources = SourceMemory()
    private let running = Mutex<[SourcePlace: Running]>([:])
    /// The sources that were saved or deleted since the followers were last arranged.
    private let changed = Mutex<Set<SourcePlace>>([])
    /// The sources of a restored store that are followed again.
    private let adopted = Mutex<Set<SourcePlace>>([])
    /// Whether followers are started for saved sources.
    private let begins = Mutex(false)
    private let news = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// The interval at which each follower logs its progress.
    private static let pause = Duration.seconds(60)
    /// The first and the longest wait after the store could not be read.
    private static let waits = (first: Duration.seconds(1), longest: Duration.seconds(60))

    init(
        registry: any ContainerRegistry & SourceRegistry & ListRegistry, store: UUIDBytes,
        intake: ChangeIntake,
        ledger: SourceLedger, line: ReaderLine, metrics: any MetricsFactory, world: World,
        logger: Logger
    ) {
        meter = FollowMeter(metrics)
        self.registry = registry
        self.store = store
        self.intake = intake
        self.ledger = ledger
        self.line = line
        self.world = world
        self.logger = logger
        news.continuation.yield()
    }

    /// Notes that a source was saved or deleted, and arranges the followers soon.
    ///
    /// If its follower waits because of a problem, it starts again: the operator has corrected
    /// something, and a missing slot or outbox is created only at a start.
    func lookAgain(at place: SourcePlace) {
        changed.withLock { _ = $0.insert(place) }
        news.continuation.yield()
    }

    /// Returns the state of a source's followed database; `nil` if it is not followed.
    func standing(of place: SourcePlace) -> FollowStanding? {
        guard let running = running.withLock({ $0[place] }) else {
            return begins.withLock { $0 } ? .begins : nil
        }
        if let problem = running.problem { return .refused(problem) }
        return running.follower.map { .followed($0.status) }
    }

    /// Updates the metrics.
    func updateMetrics() {
        let all = running.withLock { Array($0.keys) }
        meter.show(
            all.compactMap { place in standing(of: place).map { (place, $0) } }, at: world.now())
    }

    /// Follows until the task is cancelled; when it returns, all followers have ended.
    func run() async throws {
        var wait = Self.waits.first
        begins.withLock { $0 = true }
        for await _ in news.stream {
            do {
                try await arrange()
                wait = Self.waits.first
            } catch {
                guard !Task.isCancelled else { break }
                // The store has no space or is briefly unavailable. The present followers continue.
                logger.warning(
                    "cannot check which databases to follow; trying again",
                    metadata: ["reason": "\(error)"])
                try? await world.clock.sleep(for: wait)
                wait = min(wait * 2, Self.waits.longest)
                news.continuation.yield()
            }
        }
        begins.withLock { $0 = false }
        await endAll()
        try Task.checkCancellation()
    }

    private func endAll() async {
        let all = running.withLock { running in
            defer { running = [:] }
            return running.values.map(\.task)
        }
        for task in all { task.cancel() }
        for task in all { await task.value }
    }

    /// Ends followers that are no longer wanted, and starts new ones.
    private func arrange() async throws {
        var wanted: [SourcePlace: FollowDefinition] = [:]
        for settings in try await registry.containers() {
            let all = try await registry.sources(of: settings.key)
            for stored in all {
                // A definition that cannot be decoded is reported where the source is shown.
                guard let definition = try? sources.source(stored, among: all).follow
                else { continue }
                wanted[SourcePlace(container: settings.key, source: stored.name)] = definition
            }
        }
        let changed = changed.withLock { changed in
            defer { changed = [] }
            return changed
        }
        let ended = running.withLock { running in
            let ended = running.filter { place, one in
                wanted[place].map { $0.differs(from: one.definition) } ?? true
                    || changed.contains(place) && one.isWaiting
            }
            for place in ended.keys { running[place] = nil }
            return ended.values.map(\.task)
        }
        for task in ended { task.cancel() }
        // Two followers of the same slot would disturb each other.
        for task in ended { await task.value }
        try await adopt()
        for (place, definition) in wanted {
            guard running.withLock({ $0[place] == nil }) else { continue }
            let begun = begin(definition, for: place, try await holding(definition, place))
            running.withLock { $0[place] = begun }
        }
    }

    /// Returns what the store contains of a database, if the store was restored since the source
    /// began to follow it.
    private func holding(
        _ definition: FollowDefinition, _ place: SourcePlace
    ) async throws -> RestoredHolding? {
        guard let former = definition.store, former != store.description else {
            return nil
        }
        let newest = try await registry.newestChange(of: place.container, from: place.source)
        return RestoredHolding(last: newest?.change?.version)
    }

    /// Notes that sources are followed by this store, because they began again or lack nothing.
    private func adopt() async throws {
        for place in adopted.withLock({ $0 }) {
            try await line.turn(of: place.container) { try await adopt(place) }
            adopted.withLock { _ = $0.remove(place) }
        }
    }

    private func adopt(_ place: SourcePlace) async throws {
        guard let stored = try await registry.source(place.source, of: place.container),
            var source = try? sources.source(stored), source.follow != nil
        else { return }
        source.follow?.store = store.description
        try await registry.save(
            StoredSource(
                container: place.container, name: place.source,
                definition: .object(source.json), savedAt: stored.savedAt))
    }

    private func begin(
        _ definition: FollowDefinition, for place: SourcePlace, _ restored: RestoredHolding?
    ) -> Running {
        var logger = logger
        logger[metadataKey: "container"] = "\(place.container)"
        logger[metadataKey: "source"] = "\(place.source)"
        let log = FollowLog(logger)
        do {
            var settings = try FollowSettings(
                definition, authorities: FollowSettings.usualAuthorities)
            settings.restored = restored
            let follower = try PostgresFollower(
                settings, clock: world.clock, now: world.now,
                changed: { [self] status in
                    log.note(status)
                    guard restored != nil, status.state == .following else { return }
                    adopted.withLock { _ = $0.insert(place) }
                    news.continuation.yield()
                },
                end: { [self] end in await take(end, from: place) }
            ) { [self] rows in await prepare(rows, from: place) }
            let clock = world.clock
            let task = Task {
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { try? await follower.run() }
                    group.addTask {
                        while (try? await clock.sleep(for: Self.pause)) != nil {
                            log.noteProgress(follower.status)
                        }
                    }
                    await group.next()
                    group.cancelAll()
                }
            }
            return Running(
                definition: definition, follower: follower, problem: nil, task: task)
        } catch let problem as FollowProblem {
            logger.error("\(problem.advice)", metadata: ["state": "\(problem.code)"])
            let clock = world.clock
            let task = Task { [self] in
                // It failed for lack of a file descriptor and is tried again; a problem in the
                // source's settings stays.
                guard !problem.needsSomebody, (try? await clock.sleep(for: Self.pause)) != nil
                else { return }
                lookAgain(at: place)
            }
            return Running(definition: definition, follower: nil, problem: problem, task: task)
        } catch {
            preconditionFailure("what is thrown here is a FollowProblem")
        }
    }

    // MARK: Taking rows

    /// Rows as a source decodes them, prepared to be appended.
    private struct Decoded: Sendable {
        let definition: JSONValue
        let batch: DecodedBatch
        let prepared: ChangeIntake.Prepared
    }

    /// Decodes rows and prepares their log entries, while earlier rows are being taken.
    private func prepare(
        _ rows: [FollowedRow], from place: SourcePlace
    ) async -> PreparedRows {
        // An error is found again, and reported, when the rows are taken.
        let decoded = try? await decode(rows, from: place)
        return { [self] in await take(rows, decoded, from: place) }
    }

    private func decode(_ rows: [FollowedRow], from place: SourcePlace) async throws -> Decoded? {
        guard let stored = try await registry.source(place.source, of: place.container) else {
            return nil
        }
        let batch = try sources.source(stored).decode(rows)
        return Decoded(
            definition: stored.definition, batch: batch,
            prepared: try intake.prepare(
                batch, by: try await intake.schema(of: place.container)))
    }

    /// Takes rows like a verified webhook of the source.
    private func take(
        _ rows: [FollowedRow], _ decoded: Decoded?, from place: SourcePlace
    ) async -> RowsTaken {
        let now = world.now()
        do {
            guard let stored = try await registry.source(place.source, of: place.container) else {
                return .not(.relayRefuses("the source was deleted"))
            }
            // The source may have been changed since.
            let isCurrent = decoded?.definition.isSpelled(as: stored.definition) == true
            let current = isCurrent ? decoded : nil
            let source = try sources.source(stored)
            let results = try await intake.take(
                current?.batch ?? source.decode(rows), prepared: current?.prepared, from: source,
                of: place.container, posted: { Self.webhook(rows, at: now) }, at: now)
            // Changes that were not taken are sent again, as after an error.
            if let throttling = results.throttling {
                return .not(.relayUnreachable(throttling.reason))
            }
            if let failure = results.failure { return refused(failure, place, at: now) }
            ledger.noteAccepted(place.source, of: place.container, results, at: now)
            return RowExceptions(older: results.older, parked: results.parked).outcome
        } catch {
            return outcome(of: error, place, at: now)
        }
    }

    /// Takes the end of a snapshot, part by part, until all records that it did not contain are
    /// deleted.
    private func take(_ end: SnapshotEnd, from place: SourcePlace) async -> RowsTaken {
        do {
            while true {
                try Task.checkCancellation()
                let source = try await registry.source(place.source, of: place.container)
                guard let source else { return .not(.relayRefuses("the source was deleted")) }
                let current = try sources.source(source)
                let results = try await intake.take(
                    current.decode(end), from: current, of: place.container, at: world.now())
                if !results.isUnfinished { return .taken }
            }
        } catch {
            return outcome(of: error, place, at: world.now())
        }
    }

    /// Returns the outcome of posting after `error` was thrown.
    private func outcome(
        of error: any Error, _ place: SourcePlace, at now: Timestamp
    ) -> RowsTaken {
        if error is CancellationError {
            return .not(.relayUnreachable("the relay is shutting down"))
        }
        let answer = ErrorMapping(error).apiError
        guard [408, 429].contains(answer.httpStatus) || answer.httpStatus >= 500 else {
            return refused(answer, place, at: now)
        }
        return .not(.relayUnreachable(answer.reason))
    }

    /// Returns the rows as a webhook would have posted them, which is kept for conflicting changes.
    private static func webhook(_ rows: [FollowedRow], at now: Timestamp) -> WebhookRequest {
        WebhookRequest(
            body: JSONValue.array(rows.map { .object($0.json) }).utf8, receivedAt: now)
    }

    private func refused(
        _ error: APIError, _ place: SourcePlace, at now: Timestamp
    ) -> RowsTaken {
        // The follower logs it itself.
        _ = ledger.noteRefused(
            SourceLedger.Refusal(
                at: now, source: place.source, address: nil, status: error.httpStatus,
                reason: error.reason, requestID: "-"), of: place.container, isKnown: true)
        return .not(.relayRefuses(error.reason))
    }
}

extension FollowDefinition {
    /// Returns whether anything is followed differently; the store that follows does not count.
    func differs(from other: FollowDefinition) -> Bool {
        var same = self
        same.store = other.store
        return same != other
    }
}

/// A source and its container.
struct SourcePlace: Sendable, Hashable {
    let container: ContainerKey
    let source: SourceName
}

extension FollowSettings {
    /// The file in which Debian and other systems keep their trusted certificate authorities.
    package static var usualAuthorities: String? {
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]
            .first { FileManager.default.fileExists(atPath: $0) }
    }
}
