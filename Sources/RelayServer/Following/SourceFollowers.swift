import ChangeSources
import FoundationEssentials
import Logging
import Metrics
import PostgresFollowing
import RelayModel
import Storage
import Synchronization

/// Follows the databases of those sources that follow one, for as long as the relay runs.
///
/// Each has a follower of its own, which decodes and appends within the process what a webhook
/// would have brought. It begins when the source is saved, begins anew when what it follows is
/// changed, or when the source is saved while it waits because of a problem, and ends with the
/// source.
package final class SourceFollowers: Sendable {
    private struct Running {
        let definition: FollowDefinition
        let follower: PostgresFollower?
        let problem: FollowProblem?
        let task: Task<Void, Never>

        /// Whether something keeps it from following.
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
    /// Has one at a time change what is set of a container: what is noted here must not write back
    /// a source that somebody has deleted, or given another secret.
    private let line: ReaderLine
    private let world: World
    private let logger: Logger
    private let meter: FollowMeter
    private let sources = SourceMemory()
    private let running = Mutex<[SourcePlace: Running]>([:])
    /// What was saved or deleted since followers were arranged.
    private let changed = Mutex<Set<SourcePlace>>([])
    /// Sources of a store that was restored, which are followed again.
    private let adopted = Mutex<Set<SourcePlace>>([])
    /// Whether followers are begun for sources that are saved.
    private let begins = Mutex(false)
    private let news = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// What goes into the log of every follower: how far it has come.
    private static let pause = Duration.seconds(60)
    /// The first wait where the store did not say what is to be followed, and the longest.
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

    /// Looks soon what a source that was saved or deleted says of a database.
    ///
    /// If its follower waits because of a problem, it begins anew: whoever saves the source has
    /// mended something, and a slot or an outbox that is gone is made again only at a beginning.
    func lookAgain(at place: SourcePlace) {
        changed.withLock { _ = $0.insert(place) }
        news.continuation.yield()
    }

    /// How it stands with the database of a source that follows one; `nil` if nobody follows it.
    func standing(of place: SourcePlace) -> FollowStanding? {
        guard let running = running.withLock({ $0[place] }) else {
            return begins.withLock { $0 } ? .begins : nil
        }
        if let problem = running.problem { return .refused(problem) }
        return running.follower.map { .followed($0.status) }
    }

    /// Brings the metrics up to date.
    func updateMetrics() {
        let all = running.withLock { Array($0.keys) }
        meter.show(
            all.compactMap { place in standing(of: place).map { (place, $0) } }, at: world.now())
    }

    /// Follows until the task is cancelled; then all followers have ended.
    func run() async throws {
        var wait = Self.waits.first
        begins.withLock { $0 = true }
        for await _ in news.stream {
            do {
                try await arrange()
                wait = Self.waits.first
            } catch {
                guard !Task.isCancelled else { break }
                // The store has no room or is away for a moment: what is followed goes on.
                logger.warning(
                    "cannot look which databases are followed yet",
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

    /// Ends followers that are no longer wanted, and begins those that are new.
    private func arrange() async throws {
        var wanted: [SourcePlace: FollowDefinition] = [:]
        for settings in try await registry.containers() {
            let all = try await registry.sources(of: settings.key)
            for stored in all {
                // A definition that cannot be read is said where it is shown.
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
        // Two of the same slot would be in each other's way.
        for task in ended { await task.value }
        try await adopt()
        for (place, definition) in wanted {
            guard running.withLock({ $0[place] == nil }) else { continue }
            let begun = begin(definition, for: place, try await holding(definition, place))
            running.withLock { $0[place] = begun }
        }
    }

    /// What the store holds of a database, if it was restored since it was said to follow it.
    private func holding(
        _ definition: FollowDefinition, _ place: SourcePlace
    ) async throws -> RestoredHolding? {
        guard let former = definition.store, former != store.description else {
            return nil
        }
        let newest = try await registry.newestChange(of: place.container, from: place.source)
        return RestoredHolding(last: newest?.change?.version)
    }

    /// Notes that sources are followed by this store, which began anew or lacks nothing.
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
                // For want of a descriptor none was begun; what the source says stays as it is.
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

    /// Rows as a source decodes them, and as they are appended.
    private struct Decoded: Sendable {
        let definition: JSONValue
        let batch: DecodedBatch
        let prepared: ChangeIntake.Prepared
    }

    /// Decodes rows, and writes what the log keeps of them, while those before are being taken.
    private func prepare(
        _ rows: [FollowedRow], from place: SourcePlace
    ) async -> PreparedRows {
        // Why it cannot be done is found out, and said, when they are taken.
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

    /// Takes rows as a webhook of the source that was believed.
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
            // What did not go in is told again, as after an error.
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

    /// Takes the end of a snapshot, part by part until all is deleted that it did not contain.
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

    /// What becomes of what was to be taken when `error` was thrown.
    private func outcome(
        of error: any Error, _ place: SourcePlace, at now: Timestamp
    ) -> RowsTaken {
        if error is CancellationError { return .not(.relayUnreachable("it is ending")) }
        let answer = ErrorMapping(error).apiError
        guard [408, 429].contains(answer.httpStatus) || answer.httpStatus >= 500 else {
            return refused(answer, place, at: now)
        }
        return .not(.relayUnreachable(answer.reason))
    }

    /// The rows as they would have been posted: what is kept of changes that conflict.
    private static func webhook(_ rows: [FollowedRow], at now: Timestamp) -> WebhookRequest {
        WebhookRequest(
            body: JSONValue.array(rows.map { .object($0.json) }).utf8, receivedAt: now)
    }

    private func refused(
        _ error: APIError, _ place: SourcePlace, at now: Timestamp
    ) -> RowsTaken {
        // The follower's own log says it.
        _ = ledger.noteRefused(
            SourceLedger.Refusal(
                at: now, source: place.source, address: nil, status: error.httpStatus,
                reason: error.reason, requestID: "-"), of: place.container, isKnown: true)
        return .not(.relayRefuses(error.reason))
    }
}

extension FollowDefinition {
    /// Whether something else is to be followed, or otherwise; by whom is no difference.
    func differs(from other: FollowDefinition) -> Bool {
        var same = self
        same.store = other.store
        return same != other
    }
}

/// A source, and whose it is.
struct SourcePlace: Sendable, Hashable {
    let container: ContainerKey
    let source: SourceName
}

extension FollowSettings {
    /// Where Debian, and others, keep the authorities that a machine trusts.
    package static var usualAuthorities: String? {
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"]
            .first { FileManager.default.fileExists(atPath: $0) }
    }
}
