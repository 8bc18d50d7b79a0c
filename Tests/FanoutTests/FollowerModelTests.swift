import Fanout
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A plain model of what a change owes, computed from the edits before it.
struct PlainRegistry {
    var subscriptions: [UInt64: Subscription] = [:]
    var devices: [UInt64: Device] = [:]
    var claimed: Set<UInt64> = []

    /// Returns the subscription and device of each delivery of a change, in order.
    mutating func deliveries(of change: RecordChange) -> [Owed] {
        var owed: [Owed] = []
        var silent: Set<UInt64> = []
        for (serial, subscription) in subscriptions.sorted(by: { $0.key < $1.key }) {
            guard fires(subscription, change), !claimed.contains(serial) else { continue }
            if subscription.firesOnce { claimed.insert(serial) }
            for (deviceSerial, device) in devices.sorted(by: { $0.key < $1.key }) {
                guard device.owner == subscription.owner,
                    device.id != change.origin.deviceID
                else { continue }
                if !subscription.notificationInfo.isVisible,
                    !silent.insert(deviceSerial).inserted
                {
                    continue
                }
                owed.append(Owed(subscription: serial, device: deviceSerial))
            }
        }
        return owed
    }

    private func fires(_ subscription: Subscription, _ change: RecordChange) -> Bool {
        guard subscription.firesOn.contains(FiresOn(change.operation)) else { return false }
        if let readers = change.readers, !readers.contains("world"),
            !readers.contains(subscription.owner.rawValue)
        {
            return false
        }
        guard case .query(let query, _) = subscription.scope else { return false }
        guard query.canonical != "TRUEPREDICATE" else { return true }
        return change.judgedImage?.fields["year"] == .integer(1907)
    }
}

struct Owed: Hashable {
    let subscription: UInt64
    let device: UInt64
}

/// A random log, and what the model says that it owes.
struct World {
    var plain = PlainRegistry()
    var expected: [LogPosition: [Owed]] = [:]
    private var nameCount = 0
    private var generator: SeededGenerator
    private let store: RelayStore
    private let users = ["alice", "bob", "carol"]

    init(seed: UInt64, in store: RelayStore) {
        generator = SeededGenerator(seed: seed)
        self.store = store
    }

    private mutating func name(_ prefix: String) -> String {
        nameCount += 1
        return "\(prefix)\(nameCount)"
    }

    /// Fills the log with random entries.
    mutating func fill(entries count: Int) async throws {
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
            at: Fixtures.moment)
        for _ in 0..<count {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0, 1: try await register()
            case 2: try await forget()
            case 3, 4: try await save()
            case 5: try await delete()
            default: try await post()
            }
        }
    }

    private mutating func register() async throws {
        let owner = users.randomElement(using: &generator) ?? "alice"
        // There are few tokens, so that they change hands.
        let token = Int.random(in: 1...6, using: &generator)
        let device = Fixtures.device(name("device"), of: owner, token: token)
        let version = try await store.register(device, at: Fixtures.moment)
        plain.devices = plain.devices.filter { $0.value.token != device.token }
        plain.devices[version.serial] = device
    }

    private mutating func forget() async throws {
        guard let gone = plain.devices.randomElement(using: &generator) else { return }
        _ = try await store.forgetDevice(
            gone.value.id, of: gone.value.owner, in: Fixtures.container, at: Fixtures.moment)
        plain.devices[gone.key] = nil
    }

    private mutating func save() async throws {
        let owner = users.randomElement(using: &generator) ?? "alice"
        var subscription = Fixtures.subscription(
            name("s"), of: owner,
            where: generator.chance(50) ? "TRUEPREDICATE" : "year == 1907",
            firesOn: generator.chance(70) ? .all : [.create])
        subscription.firesOnce = generator.chance(30)
        subscription.notificationInfo.shouldBadge = generator.chance(40)
        if generator.chance(30) { subscription.notificationInfo.alertBody = "hello" }
        try await apply(.create(subscription), of: owner)
    }

    private mutating func delete() async throws {
        guard let gone = plain.subscriptions.randomElement(using: &generator) else { return }
        try await apply(.delete(gone.value.id), of: gone.value.owner.rawValue)
    }

    private mutating func apply(_ edit: SubscriptionEdit, of owner: String) async throws {
        let outcomes = try await store.edit(
            [edit],
            of: SubscriptionOwner(
                container: Fixtures.container, database: .public,
                user: Fixtures.identifier(owner)), atomicity: .independent, at: Fixtures.moment)
        switch outcomes.first {
        case .saved(let version): plain.subscriptions[version.serial] = version.subscription
        case .deleted(let id):
            plain.subscriptions = plain.subscriptions.filter {
                $0.value.id != id || $0.value.owner.rawValue != owner
            }
        default: break
        }
    }

    private mutating func post() async throws {
        let operation = ChangeOperation.allCases.randomElement(using: &generator) ?? .create
        var change = Fixtures.change(
            operation, name("a"),
            fields: ["year": .integer(generator.chance(50) ? 1907 : 1908)])
        if generator.chance(20) { change.readers = ["alice"] }
        if generator.chance(30), let origin = plain.devices.randomElement(using: &generator) {
            change.origin = ChangeOrigin(deviceID: origin.value.id, userID: origin.value.owner)
        }
        let outcomes = try await store.append(
            [ChangeToAppend(change, key: nil)], container: Fixtures.container,
            source: Fixtures.identifier("test"), at: Fixtures.moment)
        guard case .appended(let position)? = outcomes.first else { return }
        expected[position] = plain.deliveries(of: change)
    }
}

/// Collects what a follower hands over until it has reached the head.
actor Collector {
    struct Finished: Error {}

    private let head: LogPosition
    private(set) var deliveries: [OwedDelivery] = []
    private(set) var finished: [LogPosition] = []
    private(set) var firings: [FiringNote] = []

    init(head: LogPosition) {
        self.head = head
    }

    func take(_ batch: OwedBatch) throws {
        deliveries += batch.deliveries
        // A batch has firings only of entries that it finishes.
        #expect(batch.firings.allSatisfy { $0.position <= batch.finished ?? .start })
        firings += batch.firings
        if let position = batch.finished { finished.append(position) }
        if batch.finished == head { throw Finished() }
    }
}

/// Compares the follower with a plain model, over a real store.
@Suite struct FollowerModelTests {
    private func follow(
        _ store: RelayStore, from mark: ProgressMark, head: LogPosition
    ) async throws -> (deliveries: [OwedDelivery], firings: [FiringNote]) {
        let collector = Collector(head: head)
        let settings = ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"])
        var follower = Follower(
            log: store, progress: store, identity: DeliveryIdentity(store: store.storeIdentity),
            indexSeed: 7, clock: ContinuousClock(), settings: { _ in settings },
            logger: .silent,
            take: { try await collector.take($0) })
        try await follower.recover(at: mark, from: store, portion: 3)
        do {
            try await follower.follow(from: mark)
        } catch is Collector.Finished {}
        let finished = await collector.finished
        #expect(finished == Array(Set(finished)).sorted())
        return (await collector.deliveries, await collector.firings)
    }

    @Test(arguments: Seeds.all)
    func `every starting position and offset gives the same deliveries`(seed: UInt64) async throws {
        let store = try TemporaryStore().open()
        var world = World(seed: seed, in: store)
        try await world.fill(entries: 70)
        let head = try await store.head()
        let (all, firings) = try await follow(store, from: .start, head: head)

        // The deliveries are exact for each position, and in order.
        let expected = world.expected.sorted { $0.key < $1.key }.flatMap { position, owed in
            owed.enumerated().map { offset, owed in
                Place(position: position, offset: UInt32(offset), owed: owed)
            }
        }
        #expect(all.map(Place.init) == expected)
        #expect(!expected.isEmpty)
        // Each firing is reported once, also if it reached nobody.
        let told = firings.flatMap { note in
            note.fired.map { Told(position: note.position, serial: $0) }
        }
        #expect(Set(told).count == told.count)
        let unreached = firings.flatMap { note in
            note.unreached.map { Told(position: note.position, serial: $0.serial) }
        }
        #expect(Set(unreached).isSubset(of: told) && !unreached.isEmpty)
        let reached = Set(
            all.map {
                Told(position: $0.delivery.ordinal.position, serial: $0.subscriptionSerial)
            })
        #expect(Set(told).subtracting(unreached) == reached)

        // Crashes after each delivery, and starts again from the progress at that point.
        var mark = ProgressMark.start
        for (index, passed) in all.enumerated() {
            let ordinal = passed.delivery.ordinal
            var step = SettledStep(
                from: mark,
                to: ProgressMark(
                    position: LogPosition(ordinal.position.rawValue - 1),
                    offset: ordinal.offset + 1))
            if let badge = passed.delivery.badge {
                let holder = BadgeHolder(
                    container: Fixtures.container, deviceID: passed.delivery.deviceID,
                    owner: passed.delivery.owner)
                step.badges = [holder: badge]
            }
            try await store.settle(step)
            mark = step.to
            let rest = try await follow(store, from: mark, head: head)
            #expect(rest.deliveries == Array(all[(index + 1)...]), "after \(ordinal)")
            #expect(
                rest.firings == firings.filter { $0.position > mark.position },
                "after \(ordinal)")
        }
        await store.close()
    }

    private struct Told: Hashable {
        let position: LogPosition
        let serial: UInt64
    }

    private struct Place: Hashable {
        let position: LogPosition
        let offset: UInt32
        let owed: Owed

        init(position: LogPosition, offset: UInt32, owed: Owed) {
            self.position = position
            self.offset = offset
            self.owed = owed
        }

        init(_ delivery: OwedDelivery) {
            self.init(
                position: delivery.delivery.ordinal.position,
                offset: delivery.delivery.ordinal.offset,
                owed: Owed(
                    subscription: delivery.subscriptionSerial, device: delivery.deviceSerial))
        }
    }
}
