import ArgumentParser
import Crypto
import Delivery
import Fanout
import Gateway
import Logging
import RelayModel
import RelayServer
import Storage
import StorageSQL

/// The rooms of the walk on a store of their own, joined as in a relay but without listeners.
struct BenchRelay: Sendable {
    private let store: RelayStore
    private let worker: DeliveryWorker
    private let badges = BadgeCounts()
    private let settings: ContainerSettings
    private let load: RelayLoad
    private let countsHealth: Bool
    private let world = World.real
    private let logger = Logger(label: "belfry.bench", factory: { _ in SwiftLogNoOpLogHandler() })

    /// Opens the store, and fills it with what the load needs.
    init(
        store place: BenchStore, gateway: CurlGatewaySettings, load: RelayLoad, countsHealth: Bool
    ) async throws {
        self.load = load
        self.countsHealth = countsHealth
        settings = ContainerSettings(key: try load.container, topics: ["com.example.bench"])
        var storeSettings = StoreSettings()
        storeSettings.quotas[.userSubscriptions] = 1
        storeSettings.quotas[.subscriptions] = Quota.largest
        storeSettings.quotas[.subscriptionBytes] = Quota.largest
        storeSettings.quotas[.devices] = Quota.largest
        storeSettings.quotas[.userDevices] = Quota.largest
        store = try place.open(storeSettings)
        try await store.save(settings, at: world.now())
        let key = GatewayCredential.SigningKey(
            teamID: "BENCHTEAM0", keyID: "BENCHKEY00",
            privateKeyPEM: ConcealedText(P256.Signing.PrivateKey().pemRepresentation))
        guard let key else { throw ExitCode.failure }
        let world = world
        let ledger = DeliveryLedger(
            at: try await store.mark(), now: world.now, generator: world.generator, logger: logger)
        let gateway = try CurlPushGateway(
            settings: gateway,
            world: GatewayWorld(
                credentials: { _, _ in .signingKey(key) }, wallClock: world.now,
                generator: world.generator), sink: ledger.take)
        worker = DeliveryWorker(
            on: ledger, recordingTo: store, through: gateway, clock: world.clock)
        try await load.furnish(store, at: world.now())
    }

    /// Follows and delivers while `body` runs, then shuts down.
    func run<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        let loops = Task { try await worker.run() }
        let following = Task { try await follow() }
        let value = try await body()
        following.cancel()
        loops.cancel()
        _ = try? await following.value
        _ = try? await loops.value
        try await worker.shutDown(within: .seconds(5))
        await store.close()
        return value
    }

    private func follow() async throws {
        let settings = settings
        let identity = DeliveryIdentity(store: store.storeIdentity)
        var follower = Follower(
            log: store, progress: store, identity: identity, indexSeed: 7, badges: badges,
            clock: world.clock, settings: { _ in settings }, logger: logger,
            take: { [worker, countsHealth] batch in
                var batch = batch
                if !countsHealth { batch.firings = [] }
                try await worker.accept(batch)
            })
        let mark = worker.recordedMark
        try await follower.recover(at: mark, from: store)
        let ranges = Task { [store, badges, worker, logger, world] in
            var ranges = RangeWorker(
                log: store, ranges: store, identity: identity, badges: badges,
                settings: { _ in settings }, logger: logger, clock: world.clock,
                take: { batch in try await worker.accept(batch) })
            try await ranges.run()
        }
        let sums = Task { [store] in
            // Adds firings up under the same condition as upkeep, without waiting for the next
            // minute.
            while true {
                try await Task.sleep(for: .seconds(1))
                guard store.firingsNotAddedUp >= 65_536 else { continue }
                while try await store.addUpFirings() { try Task.checkCancellation() }
            }
        }
        defer {
            ranges.cancel()
            sums.cancel()
        }
        try await follower.follow(from: mark)
    }

    /// Appends changes durably.
    ///
    /// With a rate it appends them one by one. Without one it appends batches, at most a few
    /// thousand changes ahead of the progress.
    func append(_ count: Int, rate: Int, batch: Int) async throws {
        guard rate > 0 else { return try await appendBatches(count, of: batch) }
        let start = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                let due = start.advanced(by: .seconds(Double(number) / Double(rate)))
                try await Task.sleep(until: due, clock: .continuous)
                group.addTask { try await appendChanges(number..<number + 1) }
            }
            try await group.waitForAll()
        }
    }

    private func appendBatches(_ count: Int, of batch: Int) async throws {
        for first in stride(from: 0, to: count, by: batch) {
            while try await store.head().rawValue > worker.recordedMark.position.rawValue + 2000 {
                try await Task.sleep(for: .milliseconds(1))
            }
            try await appendChanges(first..<min(first + batch, count))
        }
    }

    private func appendChanges(_ numbers: Range<Int>) async throws {
        let changes = try numbers.map { ChangeToAppend(try load.change($0), key: nil) }
        _ = try await store.append(
            changes, container: settings.key, source: try load.source, at: world.now())
    }

    /// Returns whether everything up to `head` is settled, including retries, which the progress
    /// has already passed.
    private func isSettled(_ head: LogPosition) async throws -> Bool {
        guard worker.recordedMark.position >= head, worker.inFlight == 0,
            try await store.containersWithRanges().isEmpty
        else { return false }
        return try await store.retries(of: settings.key, limit: 1).isEmpty
    }

    /// Waits until everything in the log is settled, including retries.
    func waitUntilSettled() async throws {
        let head = try await store.head()
        while try await !isSettled(head) {
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}

/// Users with devices and one subscription each, and changes that fire the subscriptions of some.
struct RelayLoad: Sendable {
    let users: Int
    let devicesPerUser: Int
    /// The number of users who follow one artist.
    let subscribers: Int
    let raisesBadges: Bool

    var container: ContainerKey {
        get throws {
            ContainerKey(container: try named("iCloud.com.example.bench"), environment: .production)
        }
    }

    var source: SourceName { get throws { try named("bench") } }

    /// Saves the users' devices and subscriptions, 64 users at a time.
    func furnish(_ store: RelayStore, at now: Timestamp) async throws {
        let width = 64
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<min(width, users) {
                group.addTask {
                    for user in stride(from: lane, to: users, by: width) {
                        try await furnish(user, in: store, at: now)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func furnish(_ user: Int, in store: RelayStore, at now: Timestamp) async throws {
        for number in 0..<devicesPerUser {
            let device = Device(
                id: try named("device-\(user)-\(number)"), container: try container,
                owner: try named("user-\(user)"), gatewayEnvironment: .production,
                token: try token(user * devicesPerUser + number))
            _ = try await store.register(device, at: now)
        }
        let owner = SubscriptionOwner(
            container: try container, database: .public, user: try named("user-\(user)"))
        let outcomes = try await store.edit(
            [.create(try subscription(of: user))], of: owner, atomicity: .allOrNothing, at: now)
        guard case .saved? = outcomes.first else { throw ExitCode.failure }
    }

    private func subscription(of user: Int) throws -> Subscription {
        let condition = "artist == 'artist-\(user / subscribers)'"
        var subscription = Subscription(
            id: try named("subscription-\(user)"), container: try container, database: .public,
            owner: try named("user-\(user)"),
            scope: .query(
                SubscriptionQuery(
                    recordType: try named("Artwork"), form: .predicate,
                    source: .string(condition), canonical: condition), zoneID: nil),
            firesOn: .all)
        subscription.notificationInfo.alertLocalizationKey = "NEW_ARTWORK"
        subscription.notificationInfo.alertLocalizationArgs = ["title"]
        subscription.notificationInfo.soundName = "default"
        subscription.notificationInfo.shouldBadge = raisesBadges
        return subscription
    }

    /// Returns the change with this number, of an artist whom some users follow.
    func change(_ number: Int) throws -> RecordChange {
        var change = RecordChange(
            .create, of: try named("Artwork"), RecordID(recordName: try named("art-\(number)")))
        change.after = RecordImage([
            "title": .string("Water Lilies \(number)"),
            "artist": .string("artist-\(number % (users / subscribers))"), "year": .integer(1907),
        ])
        return change
    }

    private func token(_ number: Int) throws -> DeviceToken {
        let digits = String(number, radix: 16)
        // Padded with a digit that no number begins with; otherwise two devices could share a
        // token.
        return try named(String(repeating: "0", count: 64 - digits.count) + digits)
    }

    private func named<Identifier: ValidatedIdentifier>(_ text: String) throws -> Identifier {
        guard let identifier = Identifier(rawValue: text) else {
            throw ValidationError("\(text) is not \(Identifier.rule)")
        }
        return identifier
    }
}
