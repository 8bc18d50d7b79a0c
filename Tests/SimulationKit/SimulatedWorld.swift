import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite

/// The world outside the relay: users register devices, save subscriptions, and post changes, in
/// two containers.
///
/// Everything follows from the seed.
struct SimulatedWorld {
    static let containers = [
        Fixtures.container,
        ContainerKey(
            container: Fixtures.identifier("iCloud.com.example.Music"), environment: .production),
    ]
    private static let users = ["ann", "bob", "cat", "dan"]

    var store: RelayStore
    var generator: SeededGenerator
    /// The position of each posted dedupe key; a key must never get another one.
    private(set) var positions: [String: LogPosition] = [:]
    /// The serials of the subscriptions that fire once.
    private(set) var once: Set<UInt64> = []
    /// The highest version of each record that was applied.
    private var versions: [String: Int64] = [:]
    private var devices: [Device] = []
    /// The device that has each token; the gateway may have declared the token dead since.
    private var holders: [ContainerKey: [DeviceToken: Device]] = [:]
    /// The subscriptions that may be edited.
    private var edited: [SubscriptionID: (subscription: Subscription, owner: SubscriptionOwner)] =
        [:]
    private var subscriptions: [(id: SubscriptionID, owner: SubscriptionOwner)] = []
    private var count = 0

    init(seed: UInt64, store: RelayStore) {
        self.store = store
        generator = SeededGenerator(seed: seed)
    }

    private mutating func name(_ prefix: String) -> String {
        count += 1
        return "\(prefix)\(count)"
    }

    private mutating func user() -> String {
        Self.users[Int.random(in: 0..<Self.users.count, using: &generator)]
    }

    static func settings(_ container: ContainerKey) -> ContainerSettings {
        ContainerSettings(key: container, topics: ["com.example.Art"])
    }

    /// Draws a container, the first more often than the second.
    private mutating func container() -> ContainerKey {
        Self.containers[generator.chance(70) ? 0 : 1]
    }

    mutating func register(at now: Timestamp) async throws {
        let user = user()
        // There are few tokens, so that they change hands.
        let token = Int.random(in: 1...8, using: &generator)
        var device = Fixtures.device(name("d"), of: user, token: token, in: container())
        if generator.chance(30) {
            // A life begins at 22:13:20 and lasts some minutes.
            device.kindness.quietHours = try QuietHours(
                json: [
                    "timeZone": "UTC", "from": "22:10",
                    "until": generator.chance(80) ? "22:15" : "04:00",
                ],
                path: "")
        }
        device.kindness.isUnlessConnected = generator.chance(20)
        _ = try await store.register(device, at: now)
        devices.append(device)
        holders[device.container, default: [:]][device.token] = device
    }

    mutating func forget(at now: Timestamp) async throws {
        guard let gone = devices.randomElement(using: &generator) else { return }
        _ = try await store.forgetDevice(
            gone.id, of: gone.owner, in: gone.container, at: now)
        holders[gone.container] = holders[gone.container]?.filter {
            ($0.value.id, $0.value.owner) != (gone.id, gone.owner)
        }
    }

    /// Returns the owner of the device that has a token now.
    func holder(of token: DeviceToken, in container: ContainerKey) -> UserID? {
        holders[container]?[token]?.owner
    }

    mutating func save(at now: Timestamp) async throws {
        let user = user()
        var subscription = Fixtures.subscription(
            name("s"), of: user,
            where: ["TRUEPREDICATE", "year == 1907", "year == 1908"][
                Int.random(in: 0..<3, using: &generator)],
            firesOn: generator.chance(50) ? .all : [.create], in: container())
        subscription.firesOnce = generator.chance(30)
        if !subscription.firesOnce, generator.chance(35) {
            subscription.kindness.digest = try PushDigest(
                json: ["seconds": .integer(Int64.random(in: 1...60, using: &generator))], path: "")
        }
        if !subscription.firesOnce, generator.chance(25) {
            subscription.kindness.throttle = try PushThrottle(
                json: [
                    "pushes": .integer(Int64.random(in: 1...2, using: &generator)),
                    "seconds": .integer(Int64.random(in: 1...60, using: &generator)),
                ], path: "")
        }
        subscription.kindness.isUnlessConnected =
            !subscription.firesOnce && generator.chance(15)
        subscription.kindness.isPaused = !subscription.firesOnce && generator.chance(20)
        if generator.chance(12) {
            subscription = Fixtures.subscription(
                subscription.id.rawValue, of: user, where: DearModel.condition,
                in: subscription.container)
        }
        if generator.chance(60) { subscription.notificationInfo.alertBody = "hello" }
        subscription.notificationInfo.shouldBadge = generator.chance(20)
        let owner = SubscriptionOwner(
            container: subscription.container, database: .public, user: subscription.owner)
        let outcome = try await store.edit(
            [.create(subscription)], of: owner, atomicity: .independent, at: now)
        guard case .saved(let version)? = outcome.first else { return }
        subscriptions.append((subscription.id, owner))
        if !subscription.firesOnce, !subscription.isDear {
            edited[subscription.id] = (subscription, owner)
        }
        if subscription.firesOnce { once.insert(version.serial) }
    }

    mutating func delete(at now: Timestamp) async throws {
        guard let gone = subscriptions.randomElement(using: &generator) else { return }
        edited[gone.id] = nil
        _ = try await store.edit(
            [.delete(gone.id)], of: gone.owner, atomicity: .independent, at: now)
    }

    /// Pauses a subscription, or resumes it.
    mutating func pause(at now: Timestamp) async throws {
        let ids = edited.keys.sorted { $0.rawValue < $1.rawValue }
        guard let id = ids.randomElement(using: &generator) else { return }
        let isPaused = edited[id]?.subscription.kindness.isPaused == true
        try await set(isPaused: !isPaused, id, at: now)
    }

    /// Resumes every subscription.
    mutating func resumeAll(at now: Timestamp) async throws {
        for id in edited.keys.sorted(by: { $0.rawValue < $1.rawValue })
        where edited[id]?.subscription.kindness.isPaused == true {
            try await set(isPaused: false, id, at: now)
        }
    }

    private mutating func set(
        isPaused: Bool, _ id: SubscriptionID, at now: Timestamp
    ) async throws {
        guard let owner = edited[id]?.owner else { return }
        edited[id]?.subscription.kindness.isPaused = isPaused
        guard let subscription = edited[id]?.subscription else { return }
        _ = try await store.edit(
            [.update(subscription)], of: owner, atomicity: .independent, at: now)
    }

    /// Posts some changes at once.
    ///
    /// Now and then one of them was posted before, or is another change under a known key.
    ///
    /// - Returns: A sentence about a broken promise, or `nil`.
    mutating func post(at now: Timestamp) async throws -> String? {
        let container = container()
        var posted: [(key: String, isOther: Bool)] = []
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let known = positions.keys.filter { $0.hasPrefix("\(container) ") }.sorted()
                .randomElement(using: &generator)
            if let known, generator.chance(20) {
                posted.append((known, generator.chance(25)))
            } else {
                posted.append((name("\(container) c"), false))
            }
        }
        let changes = posted.map { Change(key: $0.key, isOther: $0.isOther) }
        let outcomes = try await store.append(
            changes.map(\.toAppend), container: container, source: Fixtures.identifier("test"),
            at: now)
        for (change, outcome) in zip(changes, outcomes) {
            if let sentence = judge(outcome, of: change) { return "\(change.key): \(sentence)" }
        }
        return nil
    }

    /// Returns what is wrong with the outcome for a change, or `nil`.
    private mutating func judge(_ outcome: AppendOutcome, of change: Change) -> String? {
        if let known = positions[change.key] {
            let right: AppendOutcome = change.isOther ? .conflict(known) : .duplicate(known)
            return outcome == right ? nil : "\(outcome), and it stands at \(known)"
        }
        let applied = versions[change.record]
        let isStale = change.version.flatMap { version in applied.map { version < $0 } } ?? false
        switch outcome {
        case .appended(let position) where !isStale: positions[change.key] = position
        case .appendedAsStale(let position) where isStale: positions[change.key] = position
        default: return "\(outcome), and the last version was \(applied ?? 0)"
        }
        if let version = change.version { versions[change.record] = max(version, applied ?? 0) }
        return nil
    }

    /// A change that follows from its key, so that it is the same whenever it is posted.
    private struct Change {
        let key: String
        /// Whether this is another change under a known key.
        let isOther: Bool
        private let number: Int

        init(key: String, isOther: Bool) {
            self.key = key
            self.isOther = isOther
            number = abs(key.utf8.reduce(0) { $0 &* 31 &+ Int($1) })
        }

        /// There are few records, so that versions come out of order.
        var record: String { "\(key.prefix { $0 != " " }) r\(number / 7 % 5)" }

        var version: Int64? { number.isMultiple(of: 3) ? nil : Int64(number / 11 % 50) }

        var toAppend: ChangeToAppend {
            let operations = ChangeOperation.allCases
            var fields: RecordFields = [
                "year": .integer((number / 3).isMultiple(of: 2) ? 1907 : 1908)
            ]
            if (number / 13).isMultiple(of: 6) { fields["a"] = DearModel.heavyField }
            var change = Fixtures.change(
                operations[number % operations.count], "r\(number / 7 % 5)", fields: fields)
            change.version = version
            return ChangeToAppend(
                change,
                key: DedupeKey(
                    kind: .position, text: key, digest: Array((isOther ? "other" : key).utf8)))
        }
    }
}
