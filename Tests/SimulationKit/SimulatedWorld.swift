import RelayModel
import RelayTestKit
import Storage

/// What happens outside the relay: users register devices, save subscriptions, and post changes.
///
/// Everything follows from the seed.
struct SimulatedWorld {
    static let settings = ContainerSettings(
        key: Fixtures.container, topics: ["com.example.Art"])
    private static let users = ["ann", "bob", "cat", "dan"]

    let store: RelayStore
    var generator: SeededGenerator
    /// The positions at which a posted key stands: it must never stand at another.
    private(set) var positions: [String: LogPosition] = [:]
    private var devices: [(id: DeviceID, owner: String)] = []
    private var subscriptions: [(id: SubscriptionID, owner: String)] = []
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

    private func owner(_ user: String) -> SubscriptionOwner {
        SubscriptionOwner(
            container: Fixtures.container, database: .public, user: Fixtures.identifier(user))
    }

    mutating func register(at now: Timestamp) async throws {
        let user = user()
        // Few tokens, so that they change hands.
        let token = Int.random(in: 1...8, using: &generator)
        let device = Fixtures.device(name("d"), of: user, token: token)
        _ = try await store.register(device, at: now)
        devices.append((device.id, user))
    }

    mutating func forget(at now: Timestamp) async throws {
        guard let gone = devices.randomElement(using: &generator) else { return }
        _ = try await store.forgetDevice(gone.id, of: Fixtures.container, at: now)
    }

    mutating func save(at now: Timestamp) async throws {
        let user = user()
        var subscription = Fixtures.subscription(
            name("s"), of: user,
            where: ["TRUEPREDICATE", "year == 1907", "year == 1908"][
                Int.random(in: 0..<3, using: &generator)],
            firesOn: generator.chance(50) ? .all : [.create])
        subscription.firesOnce = generator.chance(30)
        if generator.chance(60) { subscription.notificationInfo.alertBody = "hello" }
        subscription.notificationInfo.shouldBadge = generator.chance(20)
        let outcome = try await store.edit(
            [.create(subscription)], of: owner(user), atomicity: .independent, at: now)
        if case .saved? = outcome.first { subscriptions.append((subscription.id, user)) }
    }

    mutating func delete(at now: Timestamp) async throws {
        guard let gone = subscriptions.randomElement(using: &generator) else { return }
        _ = try await store.edit(
            [.delete(gone.id)], of: owner(gone.owner), atomicity: .independent, at: now)
    }

    /// Posts some changes at once, now and then one that was posted before.
    ///
    /// - Returns: What breaks a promise, if anything does.
    mutating func post(at now: Timestamp) async throws -> String? {
        var keys: [String] = []
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let known = positions.keys.sorted().randomElement(using: &generator)
            keys.append(generator.chance(15) ? known ?? name("c") : name("c"))
        }
        let changes = keys.map { change($0) }
        let outcomes = try await store.append(
            changes, container: Fixtures.container, source: Fixtures.identifier("test"), at: now)
        for (key, outcome) in zip(keys, outcomes) {
            switch outcome {
            case .appended(let position):
                if let known = positions[key] { return "\(key) stands at \(known), \(position)" }
                positions[key] = position
            case .duplicate(let position):
                if positions[key] != position { return "\(key) is not at \(position)" }
            case .appendedAsStale, .conflict: return "\(key): \(outcome)"
            }
        }
        return nil
    }

    /// A change that follows from its key, so that it is the same whenever it is posted.
    private func change(_ key: String) -> ChangeToAppend {
        let number = key.utf8.reduce(0) { $0 &* 31 &+ Int($1) }
        let operations = ChangeOperation.allCases
        let change = Fixtures.change(
            operations[abs(number) % operations.count], key,
            fields: ["year": .integer(abs(number / 3).isMultiple(of: 2) ? 1907 : 1908)])
        return ChangeToAppend(
            change,
            key: DedupeKey(kind: .position, text: key, digest: Array(key.utf8)))
    }
}
