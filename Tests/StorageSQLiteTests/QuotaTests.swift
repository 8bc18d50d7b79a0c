import GRDB
import Migrations
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Quotas are enforced in the transaction that writes, and uses are counted without reading the
/// rows.
@Suite struct QuotaTests {
    private static let ann = Sample.owner("ann")
    private static let type: RecordType = Sample.identifier("Artwork")

    /// Runs `body` on a store with these quotas, and checks the counts at the end.
    private static func with(
        _ quotas: [Quota: Int], _ body: (RelayStore) async throws -> Void
    ) async throws {
        let home = try TemporaryStore()
        var settings = StoreSettings.forTests
        for (quota, limit) in quotas { settings.quotas[quota] = limit }
        let store = try RelayStore.open(path: home.path, settings: settings)
        for key in [Sample.container, Sample.otherContainer] {
            try await store.save(
                ContainerSettings(key: key, topics: ["t"]), at: Sample.moment(0))
        }
        try await body(store)
        await store.close()
        #expect(try RelayStore.check(path: home.path).problems == [])
    }

    // MARK: Subscriptions

    private static func create(
        _ store: RelayStore, _ names: [String], of owner: SubscriptionOwner = ann,
        _ atomicity: EditAtomicity = .independent
    ) async throws -> [SubscriptionEditOutcome] {
        try await store.edit(
            names.map {
                .create(Sample.subscription($0, artist: "artist-\($0)", of: owner))
            }, of: owner, atomicity: atomicity, at: Sample.moment(1))
    }

    private static func use(_ store: RelayStore, _ quota: Quota) async throws -> Int? {
        try await store.quotaUse(of: Sample.container).amounts[quota]
    }

    @Test func `the number of subscriptions of a user and of a container is limited`() async throws
    {
        try await Self.with([.userSubscriptions: 2, .subscriptions: 3]) { store in
            let first = try await Self.create(store, ["a", "b", "c"])
            #expect(first.map(\.isRefusal) == [false, false, true])
            #expect(
                first[2] == .overQuota(QuotaRefusal(.userSubscriptions, limit: 2, use: 2)))
            // All databases of a user count together.
            var elsewhere = Self.ann
            elsewhere.database = .private
            #expect(try await Self.create(store, ["p"], of: elsewhere)[0].isRefusal)
            // If an atomic request exceeds a quota, nothing of it is applied.
            let bob = Sample.owner("bob")
            #expect(
                try await Self.create(store, ["d", "e"], of: bob, .allOrNothing) == [
                    .undone, .overQuota(QuotaRefusal(.subscriptions, limit: 3, use: 3)),
                ])
            #expect(try await Self.use(store, .subscriptions) == 2)
            #expect(try await !Self.create(store, ["d"], of: bob)[0].isRefusal)
            // Existing subscriptions may be changed and saved again, and a deletion makes room.
            #expect(try await !Self.create(store, ["a"])[0].isRefusal)
            _ = try await store.edit(
                [.delete(Sample.identifier("a"))], of: Self.ann, atomicity: .independent,
                at: Sample.moment(2))
            #expect(try await !Self.create(store, ["c"])[0].isRefusal)
            #expect(
                store.quotaTally.reached == [.userSubscriptions: 2, .subscriptions: 1])
        }
    }

    @Test func `simultaneous saves do not exceed a quota`() async throws {
        try await Self.with([.userSubscriptions: 10]) { store in
            let saved = try await withThrowingTaskGroup(of: Bool.self) { tasks in
                for number in 0..<40 {
                    tasks.addTask {
                        try await !Self.create(store, ["s\(number)"])[0].isRefusal
                    }
                }
                return try await tasks.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(saved == 10)
            #expect(try await Self.use(store, .subscriptions) == 10)
        }
    }

    @Test func `the bytes of subscriptions are limited, and a smaller one may replace another`()
        async throws
    {
        try await Self.with([.userSubscriptionBytes: 2000]) { store in
            var big = Sample.subscription("a", artist: "x", of: Self.ann)
            big.notificationInfo.alertBody = String(repeating: "y", count: 1200)
            func edit(_ edit: SubscriptionEdit) async throws -> SubscriptionEditOutcome {
                try await store.edit(
                    [edit], of: Self.ann, atomicity: .independent, at: Sample.moment(1))[0]
            }
            #expect(try await !edit(.create(big)).isRefusal)
            let used = try await Self.use(store, .subscriptionBytes) ?? 0
            #expect((1200..<2000).contains(used))
            var bigger = big
            bigger.notificationInfo.alertBody = String(repeating: "z", count: 2040)
            #expect(
                try await edit(.update(bigger))
                    == .overQuota(QuotaRefusal(.userSubscriptionBytes, limit: 2000, use: used)))
            var smaller = big
            smaller.notificationInfo.alertBody = "z"
            #expect(try await !edit(.update(smaller)).isRefusal)
        }
    }

    @Test func `a container keeps the rates that it sets`() async throws {
        try await Self.with([:]) { store in
            var settings = ContainerSettings(key: Sample.container, topics: ["a"])
            for rates in [
                RequestRates(key: 0, user: 20), RequestRates(user: 1), RequestRates(),
            ] {
                settings.rates = rates
                try await store.save(settings, at: Sample.moment(1))
                #expect(try await store.container(Sample.container)?.rates == rates)
                let listed = try await store.containers().first { $0.key == settings.key }
                #expect(listed?.rates == rates)
            }
        }
    }

    @Test func `a container sets its own quotas and keeps what exceeds them`() async throws {
        try await Self.with([.userSubscriptions: 2]) { store in
            var settings = ContainerSettings(key: Sample.container, topics: ["t"])
            settings.quotas[.userSubscriptions] = 4
            try await store.save(settings, at: Sample.moment(1))
            let many = try await Self.create(store, ["a", "b", "c", "d", "e"])
            #expect(many.filter(\.isRefusal).count == 1)
            settings.quotas[.userSubscriptions] = 1
            try await store.save(settings, at: Sample.moment(1))
            #expect(try await store.container(Sample.container)?.quotas == settings.quotas)
            #expect(try await store.subscriptions(of: Self.ann).count == 4)
            #expect(
                try await Self.create(store, ["e"])
                    == [.overQuota(QuotaRefusal(.userSubscriptions, limit: 1, use: 4))])
        }
    }

    // MARK: Devices

    @Test func `a further device of a user ends the least recently registered one`() async throws {
        try await Self.with([.userDevices: 2]) { store in
            func register(_ name: String, _ token: UInt8, at second: Int64) async throws {
                _ = try await store.register(
                    Sample.device(name, of: "ann", token: token), at: Sample.moment(second))
            }
            func names() async throws -> [String] {
                try await store.devices(of: Sample.container, owner: nil, limit: 10)
                    .map(\.device.id.rawValue)
            }
            try await register("one", 1, at: 1)
            try await register("two", 2, at: 2)
            // The device is registered again, so it is still in use.
            try await register("one", 1, at: 3)
            _ = try await store.register(
                Sample.device("bobs", of: "bob", token: 9), at: Sample.moment(3))
            try await register("three", 3, at: 4)
            #expect(try await names() == ["one", "bobs", "three"])
            // The follower learns of the ended device from the entry of the new one.
            let entries = try await store.entries(after: LogPosition(4), limit: 1)
            guard case .deviceSaved(_, replaced: let ended)? = entries.first?.body else {
                Issue.record("\(entries)")
                return
            }
            #expect(ended == [2])
            // A new token for an existing device ends no other device.
            try await register("three", 4, at: 5)
            #expect(try await names() == ["one", "bobs", "three"])
        }
    }

    @Test func `the number of devices is limited, and no device ends for another user's`()
        async throws
    {
        try await Self.with([.devices: 1]) { store in
            let phone = Sample.device("phone", of: "ann", token: 1)
            _ = try await store.register(phone, at: Sample.moment(1))
            let refusal = StorageError.overQuota(QuotaRefusal(.devices, limit: 1, use: 1))
            await #expect(throws: refusal) {
                try await store.register(
                    Sample.device("bobs", of: "bob", token: 2), at: Sample.moment(2))
            }
            _ = try await store.register(phone, at: Sample.moment(3))
            let devices = try await store.devices(of: Sample.container, owner: nil, limit: 9)
            #expect(devices.map(\.device) == [phone])
            #expect(store.quotaTally.reached == [.devices: 1])
        }
    }

    @Test func `a device that replaces another is accepted beyond lowered quotas`()
        async throws
    {
        try await Self.with([:]) { store in
            func register(
                _ name: String, of user: String, _ token: UInt8, at second: Int64
            ) async throws -> [String] {
                _ = try await store.register(
                    Sample.device(name, of: user, token: token), at: Sample.moment(second))
                return try await store.devices(of: Sample.container, owner: nil, limit: 10)
                    .map(\.device.id.rawValue)
            }
            _ = try await register("one", of: "ann", 1, at: 1)
            _ = try await register("two", of: "ann", 2, at: 2)
            _ = try await register("three", of: "ann", 3, at: 3)
            var settings = ContainerSettings(key: Sample.container, topics: ["t"])
            settings.quotas[.userDevices] = 1
            settings.quotas[.devices] = 1
            try await store.save(settings, at: Sample.moment(4))
            // A new token for an existing device, and a token that moves to another user's device.
            #expect(try await register("two", of: "ann", 9, at: 5) == ["one", "three", "two"])
            #expect(try await register("bobs", of: "bob", 9, at: 6) == ["one", "three", "bobs"])
            // At the user's quota, the device that ends makes the room.
            #expect(try await register("new", of: "bob", 8, at: 7) == ["one", "three", "new"])
            let refusal = StorageError.overQuota(QuotaRefusal(.devices, limit: 1, use: 3))
            await #expect(throws: refusal) {
                try await register("cids", of: "cid", 7, at: 8)
            }
            #expect(try await Self.use(store, .devices) == 3)
        }
    }

    // MARK: Records and zones

    private static func place(_ user: String) -> RecordPlace {
        RecordPlace(
            container: Sample.container, database: .private, owner: Sample.identifier(user))
    }

    private static func write(
        _ store: RelayStore, _ kind: RecordEdit.Kind, _ names: [String], of user: String = "ann",
        text: String = "x"
    ) async throws -> [RecordEditOutcome] {
        let edits = names.map { name in
            var edit = RecordEdit(
                kind, RecordID(recordName: Sample.identifier(name)), type: type)
            if kind != .forceDelete { edit.fields = ["text": .string(text)] }
            return edit
        }
        return try await store.modify(
            edits, in: place(user),
            by: RecordEditor(userID: Sample.identifier(user), isServer: false),
            atomicity: .independent,
            additions: [RecordTypeDefinition(type, isInferred: true)], at: Sample.moment(1))
    }

    @Test func `the number of records of a user and of a container is limited`() async throws {
        try await Self.with([.userRecords: 2, .records: 3]) { store in
            let outcomes = try await Self.write(store, .create, ["a", "b", "c"])
            #expect(outcomes.map(\.isRefusal) == [false, false, true])
            #expect(
                outcomes[2]
                    == .refused(.overQuota(QuotaRefusal(.userRecords, limit: 2, use: 2))))
            #expect(try await !Self.write(store, .forceUpdate, ["a"], text: "y")[0].isRefusal)
            let bobs = try await Self.write(store, .create, ["a", "b"], of: "bob")
            #expect(
                bobs[1] == .refused(.overQuota(QuotaRefusal(.records, limit: 3, use: 3))))
            #expect(try await Self.write(store, .forceDelete, ["a"])[0].isRefusal == false)
            #expect(try await !Self.write(store, .create, ["c"])[0].isRefusal)
            #expect(try await Self.use(store, .records) == 3)
        }
    }

    @Test func `the bytes of records are limited, including marks of deleted ones`() async throws {
        try await Self.with([.userRecordBytes: 3000]) { store in
            let long = String(repeating: "x", count: 2000)
            #expect(try await !Self.write(store, .create, ["a"], text: long)[0].isRefusal)
            let used = try await Self.use(store, .recordBytes) ?? 0
            #expect((2256..<2400).contains(used))
            #expect(
                try await Self.write(store, .create, ["b"], text: long) == [
                    .refused(
                        .overQuota(QuotaRefusal(.userRecordBytes, limit: 3000, use: used)))
                ])
            #expect(try await !Self.write(store, .forceUpdate, ["a"], text: "y")[0].isRefusal)
            #expect(try await !Self.write(store, .create, ["b"], text: long)[0].isRefusal)
            _ = try await Self.write(store, .forceDelete, ["a", "b"])
            #expect(try await Self.use(store, .recordBytes) == 512)
            #expect(try await Self.use(store, .records) == 0)
        }
    }

    @Test func `the bytes of records that one request changes are limited`() async throws {
        try await Self.with([:]) { store in
            let long = String(repeating: "x", count: 900_000)
            let names = (0..<12).map { "r\($0)" }
            for name in names { _ = try await Self.write(store, .create, [name], text: long) }
            // Each change holds the record before and after it.
            let outcomes = try await Self.write(store, .forceUpdate, names, text: long + "y")
            #expect(outcomes.filter(\.isRefusal).count == 2)
            #expect(outcomes.last == .refused(.tooMuchAtOnce(bytes: 16 * 1024 * 1024)))
        }
    }

    @Test func `updates do not make a record larger than the limit`() async throws {
        try await Self.with([:]) { store in
            let long = String(repeating: "x", count: 600_000)
            _ = try await Self.write(store, .create, ["a"], text: long)
            func add(_ text: String) async throws -> RecordEditOutcome {
                var edit = RecordEdit(
                    .forceUpdate, RecordID(recordName: Sample.identifier("a")), type: Self.type)
                edit.fields = ["more": .string(text)]
                return try await store.modify(
                    [edit], in: Self.place("ann"),
                    by: RecordEditor(userID: Sample.identifier("ann"), isServer: false),
                    atomicity: .independent, additions: [], at: Sample.moment(2))[0]
            }
            #expect(try await add(long) == .refused(.tooLarge))
            #expect(try await !add("y").isRefusal)
        }
    }

    @Test func `the bytes that one transaction writes for a webhook are limited`() async throws {
        try await Self.with([:]) { store in
            try await store.extendSchema(
                of: Sample.container, with: [RecordTypeDefinition(Self.type)])
            func append(
                _ operation: ChangeOperation, _ names: [String], _ image: RecordImage
            ) async throws -> [AppendOutcome] {
                let changes = names.map { name in
                    var change = RecordChange(
                        operation, of: Self.type, RecordID(recordName: Sample.identifier(name)))
                    change.after = image
                    return ChangeToAppend(change, key: nil)
                }
                return try await store.append(
                    changes, container: Sample.container, source: Sample.source,
                    at: Sample.moment(1))
            }
            let names = (0..<12).map { "r\($0)" }
            let long = RecordImage(["text": .string(String(repeating: "x", count: 900_000))])
            for name in names { _ = try await append(.create, [name], long) }
            let short = RecordImage(["n": .integer(1)], completeness: .partial)
            // Each change holds the record before and after it.
            #expect(try await append(.update, names, short).count == 10)
            #expect(try await append(.update, ["r10", "r11"], short).count == 2)
        }
    }

    @Test func `a record built from partial images is no larger than a webhook`() async throws {
        try await Self.with([:]) { store in
            try await store.extendSchema(
                of: Sample.container, with: [RecordTypeDefinition(Self.type)])
            let id = RecordID(recordName: Sample.identifier("a"))
            let long = String(repeating: "x", count: 900_000)
            for number in 0..<6 {
                var change = RecordChange(number == 0 ? .create : .update, of: Self.type, id)
                change.after = RecordImage(
                    ["f\(number)": .string(long)], completeness: number == 0 ? .full : .partial)
                _ = try await store.append(
                    [ChangeToAppend(change, key: nil)], container: Sample.container,
                    source: Sample.source, at: Sample.moment(1))
            }
            let place = RecordPlace(
                container: Sample.container, database: .public, owner: nil)
            let kept = try await store.records(named: [id], in: place)
            #expect(kept.map { $0.fields.keys.sorted() } == [["f4", "f5"]])
            #expect(kept.map(\.isPartial) == [true])
        }
    }

    @Test func `a webhook's change fires although there is no room to keep its record`()
        async throws
    {
        try await Self.with([.records: 1]) { store in
            try await store.extendSchema(
                of: Sample.container, with: [RecordTypeDefinition(Self.type)])
            func append(_ name: String, _ text: String) async throws -> AppendOutcome {
                var change = RecordChange(
                    .update, of: Self.type, RecordID(recordName: Sample.identifier(name)))
                change.after = RecordImage(["text": .string(text)])
                return try await store.append(
                    [ChangeToAppend(change, key: nil)], container: Sample.container,
                    source: Sample.source, at: Sample.moment(1))[0]
            }
            #expect(try await append("a", "one") == .appended(LogPosition(1)))
            #expect(try await append("b", "two") == .appended(LogPosition(2)))
            // A record that is already kept follows its source.
            let long = String(repeating: "x", count: 5000)
            #expect(try await append("a", long) == .appended(LogPosition(3)))
            let place = RecordPlace(
                container: Sample.container, database: .public, owner: nil)
            let kept = try await store.records(
                named: ["a", "b"].map { RecordID(recordName: Sample.identifier($0)) }, in: place)
            #expect(kept.map(\.fields) == [["text": .string(long)]])
            #expect(try await store.quotaUse(of: Sample.container).unkept == 1)
            #expect(try await store.backlog().unkept == 1)
            #expect(try await store.entries(after: .start, limit: 9).count == 3)
        }
    }

    @Test func `a webhook's request keeps records and creates zones up to the quotas`()
        async throws
    {
        try await Self.with([.records: 4, .databaseZones: 2]) { store in
            try await store.extendSchema(
                of: Sample.container, with: [RecordTypeDefinition(Self.type)])
            func append(_ names: [(zone: String, record: String)]) async throws {
                let changes = names.map { zone, record in
                    let zoneID = ZoneID(zoneName: zone) ?? .default
                    var change = RecordChange(
                        .create, of: Self.type,
                        RecordID(recordName: Sample.identifier(record), zoneID: zoneID))
                    change.after = RecordImage(["text": .string("x")])
                    return ChangeToAppend(change, key: nil)
                }
                _ = try await store.append(
                    changes, container: Sample.container, source: Sample.source,
                    at: Sample.moment(1))
            }
            // The third zone exceeds the quota.
            try await append([("a", "1"), ("a", "2"), ("b", "1"), ("c", "1")])
            #expect(try await store.quotaUse(of: Sample.container).unkept == 1)
            #expect(try await Self.use(store, .records) == 3)
            // One more record fits.
            try await append([("b", "2"), ("b", "3"), ("a", "3")])
            #expect(try await store.quotaUse(of: Sample.container).unkept == 3)
            #expect(try await Self.use(store, .records) == 4)
            let place = RecordPlace(
                container: Sample.container, database: .public, owner: nil)
            let zones = try await store.zonePage(of: place, after: nil, PageBounds(rows: 9))
                .elements
            #expect(Set(zones.map(\.zoneID.zoneName)) == ["a", "b"])
            #expect(Set(zones.map(\.position)) == [LogPosition(2), LogPosition(5)])
        }
    }

    @Test func `the number of zones of a database and of a container is limited`() async throws {
        try await Self.with([.databaseZones: 2, .zones: 3]) { store in
            func create(_ name: String, of user: String) async throws {
                let zone = ZoneID(zoneName: name) ?? .default
                _ = try await store.createZones([zone], in: Self.place(user))
            }
            // Every user has a default zone, which nobody creates.
            for user in ["ann", "bob", "cid", "dan"] {
                _ = try await store.createZones([.default], in: Self.place(user))
            }
            for name in ["a", "b", "a"] { try await create(name, of: "ann") }
            await #expect(
                throws: StorageError.overQuota(QuotaRefusal(.databaseZones, limit: 2, use: 2))
            ) { try await create("c", of: "ann") }
            try await create("a", of: "bob")
            await #expect(
                throws: StorageError.overQuota(QuotaRefusal(.zones, limit: 3, use: 3))
            ) { try await create("b", of: "bob") }
        }
    }

    // MARK: Counting

    @Test func `data from before the counts existed is counted`() async throws {
        let home = try TemporaryStore()
        let released = Migration.released.prefix { !$0.name.hasSuffix("_countQuotas") }
        let settings = StoreSettings.forTests
        let path = home.path
        // The container settings are written with SQL, because such an old file lacks one of the
        // columns that the present code writes.
        let old = StoreConnections(path: path, settings: settings)
        _ = try old.prepare(StoreSchema(migrations: Array(released)))
        let queue = try DatabaseQueue(path: path)
        try await queue.write { db in
            try db.execute(
                sql: """
                    INSERT INTO container
                        (id, name, environment, topics, expirationSeconds, savedAt)
                    VALUES (1, 'iCloud.com.example.Art', 'development', '[]', 0, 0);
                    INSERT INTO user (id, container, name) VALUES (7, 1, 'ann');
                    INSERT INTO device (container, owner, deviceID, gatewayEnvironment, token,
                        registeredAt, activation) VALUES (1, 7, 'd', 'production', 'aa', 0, 1);
                    INSERT INTO recordZone (container, database, owner, zoneOwner, zoneName, edit)
                    VALUES (1, 'private', 'ann', '', 'z', 1);
                    INSERT INTO shadowRecord (container, database, owner, zoneOwner, zoneName,
                        recordType, recordName, source, position, fields, isKept)
                    VALUES (1, 'private', 'ann', '', 'z', 'T', 'r', '_cloudkit', 1, '{"a":1}', 1);
                    """)
        }
        try queue.close()
        _ = try RelayStore.migrate(path: path)
        let counted = try DatabaseQueue(path: path)
        let rows = try await counted.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT thing || ' ' || holder || ' ' || number || ' ' || bytes FROM quotaUse
                    ORDER BY thing, holder
                    """)
        }
        #expect(
            rows == [
                "2  1 0", "2 7 1 0", "3  1 263", "3 ann 1 263", "4  1 0", "4 private/ann 1 0",
            ])
        try counted.close()
    }
}
