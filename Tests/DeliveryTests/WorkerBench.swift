import CoreMetrics
import Delivery
import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization

/// A worker on a real store, with a scripted gateway and a clock that stands still.
struct WorkerBench {
    let store: RelayStore
    let clock = TestClock()
    let worker: DeliveryWorker
    let gateway: ScriptedGateway
    let progress: FaultyProgress
    let metrics = MetricsBook()
    let log = LogBook()
    static let otherContainer = ContainerKey(
        container: Fixtures.identifier("iCloud.com.example.other"), environment: .development)

    init(
        window: Int = 64, retryWindow: Int = 64, at mark: ProgressMark = .start,
        on temporary: TemporaryStore? = nil, maximumAttempts: Int = 24, silentPerHour: Int = 0,
        script: @escaping ScriptedGateway.Script = { _, _ in .accepted }
    ) async throws {
        let store = try (temporary ?? TemporaryStore()).open()
        for key in [Fixtures.container, Self.otherContainer] {
            try await store.save(
                ContainerSettings(key: key, topics: ["com.example.art"]), at: Fixtures.moment)
        }
        self.store = store
        if try await store.devices(of: Fixtures.container, owner: nil, limit: 1).isEmpty {
            try await Self.registerDevices(in: store)
        }
        progress = FaultyProgress(store)
        var settings = DeliverySettings()
        settings.window = window
        settings.retryWindow = retryWindow
        settings.stepInterval = .zero
        settings.silentPushesPerHour = silentPerHour
        let ledger = DeliveryLedger(
            at: mark, settings: settings,
            judge: OutcomeJudge(retries: RetryPolicy(maximumAttempts: maximumAttempts)),
            now: { [clock] in clock.moment }, generator: SeededGenerator(seed: 1),
            logger: log.logger, metrics: metrics)
        gateway = ScriptedGateway(answeringTo: ledger.take, script: script)
        worker = DeliveryWorker(
            on: ledger, recordingTo: progress, through: gateway, clock: clock)
    }

    /// Registers the device of the fixtures' deliveries, with the serial that they name, and a
    /// second one.
    private static func registerDevices(in store: RelayStore) async throws {
        for container in [Fixtures.container, otherContainer] {
            for (number, name) in ["phone", "tablet"].enumerated() {
                _ = try await store.register(
                    Fixtures.device(name, token: number + 1, in: container), at: Fixtures.moment)
            }
        }
    }

    /// Runs the worker's loops while `body` runs, and cancels them afterwards.
    func run(_ body: () async throws -> Void) async throws {
        let worker = worker
        let loops = Task { try await worker.run() }
        do {
            try await body()
        } catch {
            loops.cancel()
            throw error
        }
        loops.cancel()
        do { try await loops.value } catch is CancellationError {}
    }

    /// Hands over one delivery for each position.
    func accept(_ positions: ClosedRange<UInt64>, expiration: Timestamp? = nil) async throws {
        let deliveries = positions.map { Fixtures.delivery(at: $0, expiration: expiration) }
        try await worker.accept(
            OwedBatch(deliveries: deliveries, finished: LogPosition(positions.upperBound)))
    }

    /// Hands over deliveries of ascending positions, one for each position.
    func accept(_ deliveries: [OwedDelivery]) async throws {
        try await worker.accept(
            OwedBatch(
                deliveries: deliveries, finished: deliveries.last?.delivery.ordinal.position))
    }

    /// Whether no answer is on its way and no step is being recorded.
    ///
    /// The clock may move only then; otherwise the answer or step would seem to come late.
    private var isAtRest: Bool { gateway.isIdle && progress.isIdle }

    /// Moves the clock in steps until `condition` holds, whenever the bench is at rest.
    ///
    /// - Returns: Whether the condition held before patience ended.
    func advance(
        by step: Duration, until condition: () async throws -> Bool
    ) async rethrows -> Bool {
        try await Turns.yield(until: condition) { if isAtRest { clock.advance(by: step) } }
    }

    /// Moves the clock `count` times, whenever the bench is at rest, and lets other tasks run.
    func advance(by step: Duration, times count: Int) async {
        for _ in 0..<count {
            _ = await Turns.yield { isAtRest }
            clock.advance(by: step)
            await Turns.pass(300)
        }
        _ = await Turns.yield { isAtRest }
    }

    /// Waits until the progress stands at the end of `position`.
    func passed(_ position: UInt64) async -> Bool {
        await Turns.yield { worker.recordedMark.position == LogPosition(position) }
    }

    var retries: [Retry] {
        get async throws { try await store.retries(of: Fixtures.container, limit: 1000) }
    }

    var deadLetters: [DeadLetter] {
        get async throws {
            try await store.deadLetters(of: Fixtures.container, reason: nil, limit: 1000)
        }
    }
}

/// The progress of a real store, which refuses steps when a test says so.
final class FaultyProgress: ShardProgress {
    private let store: RelayStore
    private let fault = Mutex<StorageError?>(nil)
    private let readingFault = Mutex<StorageError?>(nil)
    private let refusals = Atomic<Int>(0)
    private let calls = Atomic<Int>(0)

    init(_ store: RelayStore) {
        self.store = store
    }

    /// The number of steps and readings refused so far.
    var refusalCount: Int { refusals.load(ordering: .relaxed) }

    /// Whether nothing is being read or recorded.
    var isIdle: Bool { calls.load(ordering: .relaxed) == 0 }

    private func counted<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        calls.wrappingAdd(1, ordering: .relaxed)
        defer { calls.wrappingSubtract(1, ordering: .relaxed) }
        return try await body()
    }

    func refuse(_ error: StorageError?) {
        fault.withLock { $0 = error }
    }

    /// Makes the readings fail that are needed before deliveries are sent, and those of waiting
    /// ones.
    func refuseReading(_ error: StorageError?) {
        readingFault.withLock { $0 = error }
    }

    private func checkReading() throws {
        guard let error = readingFault.withLock({ $0 }) else { return }
        refusals.wrappingAdd(1, ordering: .relaxed)
        throw error
    }

    func mark() async throws -> ProgressMark { try await store.mark() }

    func settle(_ step: SettledStep) async throws {
        if let error = fault.withLock({ $0 }) {
            refusals.wrappingAdd(1, ordering: .relaxed)
            throw error
        }
        try await counted { try await store.settle(step) }
    }

    func claimOnce(_ serials: [UInt64], at position: LogPosition) async throws -> Set<UInt64> {
        try await counted { try await store.claimOnce(serials, at: position) }
    }

    func dueRetries(
        at now: Timestamp, limit: Int, excluding: Set<DeliveryID>,
        unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> [Retry] {
        try await counted {
            try await store.dueRetries(at: now, limit: limit, excluding: excluding, unless: isHeld)
        }
    }

    func nextRetryDue(
        excluding: Set<DeliveryID>, unless isHeld: @escaping @Sendable (RetryLane) -> Bool
    ) async throws -> Timestamp? {
        try await counted { try await store.nextRetryDue(excluding: excluding, unless: isHeld) }
    }

    func renewWaits(at now: Timestamp) async throws -> Int {
        try await counted { try await store.renewWaits(at: now) }
    }

    func throttlePasts(
        of lines: [ThrottledLine], at now: Timestamp
    ) async throws -> [ThrottlePast] {
        try checkReading()
        return try await counted { try await store.throttlePasts(of: lines, at: now) }
    }

    func kindness(among deliveries: [OwedDelivery]) async throws -> [DeliveryID: Kindness] {
        try await counted { try await store.kindness(among: deliveries) }
    }

    func dueDigests(at now: Timestamp, limit: Int) async throws -> [Digest] {
        try await counted { try await store.dueDigests(at: now, limit: limit) }
    }

    func nextDigestDue() async throws -> Timestamp? {
        try await counted { try await store.nextDigestDue() }
    }

    func close(_ digests: [ClosingDigest], at now: Timestamp) async throws -> Int {
        try await counted { try await store.close(digests, at: now) }
    }

    func collapsingRetries(limit: Int) async throws -> [Retry] {
        try checkReading()
        return try await counted { try await store.collapsingRetries(limit: limit) }
    }

    func endedDevices(among serials: some Sequence<UInt64>) -> Set<UInt64> {
        store.endedDevices(among: serials)
    }

    var endedDevicesCount: UInt64 { store.endedDevicesCount }

    func hasEnded(_ serial: UInt64, since count: UInt64) -> Bool {
        store.hasEnded(serial, since: count)
    }

    func withdrawals(
        among deliveries: [OwedDelivery]
    ) async throws -> [DeliveryID: Withdrawal] {
        try checkReading()
        return try await counted { try await store.withdrawals(among: deliveries) }
    }
}

/// Returns a delivery for each position, modified by `change`.
func deliveries(
    _ positions: ClosedRange<UInt64>, _ change: (inout Delivery) -> Void = { _ in }
) -> [OwedDelivery] {
    positions.map { position in
        var owed = Fixtures.delivery(at: position)
        change(&owed.delivery)
        return owed
    }
}
