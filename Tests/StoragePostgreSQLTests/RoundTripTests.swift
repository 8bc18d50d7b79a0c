import Foundation
import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Synchronization
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Round trips to a real server for things that are written together.
///
/// Over a network each round trip counts, and no other request writes meanwhile.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct RoundTripTests {
    private static func entry(_ number: Int) -> InboxEntry {
        InboxEntry(
            owner: InboxOwner(
                container: Sample.container, user: Sample.identifier("user-\(number % 10)")),
            position: LogPosition(UInt64(1 + number / 10)), subscriptionSerial: 1,
            subscriptionID: Sample.identifier("s1"), database: .public,
            notificationID: UUIDBytes(high: 7, low: UInt64(number)), originDevice: nil,
            payload: Array("{}".utf8), at: Sample.moment(1))
    }

    @Test func `the dedupe keys of a request are looked up together and remembered once each`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let container = try commit.container(Sample.container)
        func run(_ changes: [ChangeToAppend], at seconds: Int64) throws -> [AppendOutcome] {
            let step = AppendStep(
                changes: try changes.map { try PreparedChange($0) }, delivery: nil,
                source: Sample.source, now: Sample.moment(seconds), settings: .forTests)
            return try step.run(in: &commit, container: container)
        }
        let changes = (1...200).map { Sample.keyed("art-\($0)", .position, "\($0)") }
        let before = connection.pipeline.roundTrips
        let first = try run(changes, at: 1)
        let expected = (UInt64(1)...200).map { AppendOutcome.appended(LogPosition($0)) }
        #expect(first == expected)
        #expect(connection.pipeline.roundTrips - before < 20)
        // The same changes again, one of them with other content, and a new one twice.
        let again =
            [changes[0], Sample.keyed("art-2", .position, "2", digest: 2)]
            + [Sample.keyed("new", .position, "new"), Sample.keyed("new", .position, "new")]
        let second = try run(again, at: 2)
        #expect(
            second == [
                .duplicate(LogPosition(1)), .conflict(LogPosition(2)), .appended(LogPosition(201)),
                .duplicate(LogPosition(201)),
            ])
        // A dedupe key that is forgotten by then makes the change new.
        let late = Int64(StoreSettings.forTests.dedupeWindow.components.seconds) + 10
        let third = try run([changes[0], changes[0]], at: late)
        #expect(third == [.appended(LogPosition(202)), .duplicate(LogPosition(202))])
        connection.rollBack()
        await store.close()
    }

    @Test func `the versions of a request are looked up together and noted`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        var commit = OpenCommit(db, head: .start, quotas: Quotas())
        let container = try commit.container(Sample.container)
        func run(
            _ changes: [ChangeToAppend], from source: SourceName = Sample.source
        ) throws -> [AppendOutcome] {
            let step = AppendStep(
                changes: try changes.map { try PreparedChange($0) }, delivery: nil,
                source: source, now: Sample.moment(1), settings: .forTests)
            return try step.run(in: &commit, container: container)
        }
        let before = connection.pipeline.roundTrips
        let first = try run((1...200).map { Sample.unkeyed("art-\($0)", version: 5) })
        let expected = (UInt64(1)...200).map { AppendOutcome.appended(LogPosition($0)) }
        #expect(first == expected)
        #expect(connection.pipeline.roundTrips - before < 20)
        // A later version, an earlier one, the same one, and one earlier than another of the same
        // request.
        let versions: [(name: String, version: Int64)] = [
            ("art-1", 6), ("art-2", 4), ("art-3", 5), ("art-1", 5), ("new", 2), ("new", 1),
        ]
        let second = try run(versions.map { Sample.unkeyed($0.name, version: $0.version) })
        #expect(
            second == [
                .appended(LogPosition(201)), .appendedAsStale(LogPosition(202)),
                .appended(LogPosition(203)), .appendedAsStale(LogPosition(204)),
                .appended(LogPosition(205)), .appendedAsStale(LogPosition(206)),
            ])
        // Versions of different sources are not compared: the last change wins.
        let third = try run(
            [Sample.unkeyed("art-1", version: 1), Sample.unkeyed("art-1", version: 2)],
            from: Sample.identifier("other"))
        #expect(third == [.appended(LogPosition(207)), .appended(LogPosition(208))])
        let noted = try Int64.fetchAll(
            db,
            sql: """
                SELECT version FROM shadowRecord
                WHERE recordName IN ('art-1', 'art-2', 'art-3', 'new') ORDER BY recordName
                """)
        #expect(noted == [2, 5, 5, 2])
        connection.rollBack()
        await store.close()
    }

    @Test func `requests of one commit look up together and see what the others wrote`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.transaction()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let found = Mutex<[AppendOutcome]>([])
        func request(
            _ change: ChangeToAppend, in key: ContainerKey = Sample.container
        ) throws -> WriteRequest {
            let step = AppendStep(
                changes: [try PreparedChange(change)], delivery: nil, source: Sample.source,
                now: Sample.moment(1), settings: .forTests)
            return WriteRequest(
                lane: .intake, container: key, changes: 1, bytes: 0,
                lookAhead: { try step.look(ahead: &$1, in: &$0, try $0.container(key)) },
                perform: { commit in
                    let outcomes = try step.run(in: &commit, container: commit.container(key))
                    return { found.withLock { $0 += outcomes } }
                }, fail: { _ in })
        }
        let requests =
            try (1...50).map { try request(Sample.keyed("art-\($0)", .position, "\($0 % 40)")) }
            + [3, 2, 4].map { try request(Sample.unkeyed("versioned", version: $0)) }
        _ = try commit.container(Sample.container)
        let before = connection.pipeline.roundTrips
        try commit.lookAhead(requests[...])
        for request in requests { try commit.run(request, .together)() }
        try connection.settle()
        // One for the keys, one for the version, and one for everything that is written; and one
        // for the type of the records.
        #expect(connection.pipeline.roundTrips - before == 4)
        let expected =
            (UInt64(1)...40).map { AppendOutcome.appended(LogPosition($0)) }
            + (UInt64(1)...10).map { .duplicate(LogPosition($0)) }
            + [
                .appended(LogPosition(41)), .appendedAsStale(LogPosition(42)),
                .appended(LogPosition(43)),
            ]
        #expect(found.withLock { $0 } == expected)
        // A request for a container that does not exist fails when it runs, and not before.
        let unknown = ContainerKey(
            container: Sample.identifier("iCloud.com.example.unknown"), environment: .development)
        let lost = try request(Sample.unkeyed("lost"), in: unknown)
        var next = OpenCommit(Database(connection), head: commit.head, quotas: Quotas())
        try next.lookAhead([lost, requests[0]])
        #expect(throws: StorageError.unknownContainer(unknown)) {
            _ = try next.run(lost, .together)
        }
        connection.rollBack()
        await store.close()
    }

    @Test(arguments: [false, true])
    func `versions are judged together as they would be one by one`(isKept: Bool) async throws {
        let changes: [ChangeToAppend] = [
            Sample.unkeyed("a", version: 5), Sample.unkeyed("a", version: 4),
            // If the record is kept, a change without a version clears its version.
            Sample.unkeyed("a"), Sample.unkeyed("a", version: 3), Sample.unkeyed("a", version: 2),
            Sample.unkeyed("b", version: 1), Sample.unkeyed("b", version: 2),
            Sample.unkeyed("b", version: 1),
        ]
        var found: [[AppendOutcome]] = []
        for size in [1, changes.count] {
            let store = try RelayStore.open(
                try TestPlace().place(), as: .forTests(), settings: .forTests)
            try await store.save(
                ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
            if isKept {
                let type: RecordType = Sample.identifier("Artwork")
                var edit = RecordEdit(
                    .create, RecordID(recordName: Sample.identifier("first")), type: type)
                edit.fields = ["title": .string("One")]
                _ = try await store.modify(
                    [edit],
                    in: RecordPlace(container: Sample.container, database: .public, owner: nil),
                    by: RecordEditor(userID: Sample.identifier("alice"), isServer: false),
                    atomicity: .independent,
                    additions: [RecordTypeDefinition(type, isInferred: true)],
                    at: Sample.moment(0))
            }
            var outcomes: [AppendOutcome] = []
            for start in stride(from: 0, to: changes.count, by: size) {
                outcomes += try await store.append(
                    Array(changes[start..<(start + size)]), container: Sample.container,
                    source: Sample.source, at: Sample.moment(1))
            }
            found.append(outcomes)
            await store.close()
        }
        #expect(found[0] == found[1])
        let stale = found[0].indices.filter { index in
            if case .appendedAsStale = found[0][index] { true } else { false }
        }
        #expect(stale == (isKept ? [1, 4, 7] : [1, 3, 4, 7]))
    }

    @Test func `kept records are written together, and their zone is created once`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        let rows = ShadowRows(
            place: RecordPlace(container: Sample.container, database: .public, owner: nil),
            container: try db.container(Sample.container))
        let stamp = RecordStamp(at: Sample.moment(1), userID: nil, deviceID: nil)
        func write(_ numbers: ClosedRange<UInt64>) throws {
            for number in numbers {
                let record = ShadowRecord(
                    recordID: RecordID(recordName: Sample.identifier("r\(number)")),
                    recordType: Sample.identifier("Artwork"), fields: ["n": .integer(1)],
                    readers: nil, created: stamp, modified: stamp, source: Sample.source,
                    position: LogPosition(number))
                try rows.put(record, version: nil, in: db)
                try rows.touch(.default, at: record.position, in: db)
            }
            try connection.settle()
        }
        func zones() throws -> [[Int64]] {
            try Row.fetchAll(db, sql: "SELECT position, edit, isDeleted FROM recordZone")
                .map { [$0[0], $0[1], $0[2]] }
        }
        let before = connection.pipeline.roundTrips
        try write(1...50)
        #expect(connection.pipeline.roundTrips - before < 5)
        #expect(try zones() == [[50, 1, 0]])
        // A deleted zone is created again.
        try db.execute(sql: "UPDATE recordZone SET isDeleted = 1, deletedAt = 1, edit = 2")
        try write(51...52)
        #expect(try zones() == [[52, 3, 0]])
        connection.rollBack()
        await store.close()
    }

    @Test func `inbox entries are numbered and written together, each once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        // Some entries occur twice in one call, and then many come again, as after a crash.
        let entries = (0..<200).map { Self.entry($0) } + (195..<200).map { Self.entry($0) }
        try InboxStep.insert(entries, perUser: 1000, in: db)
        try InboxStep.insert(Array(entries.prefix(100)), perUser: 1000, in: db)
        try connection.settle()
        #expect(connection.pipeline.roundTrips < 60)
        let count = try Int64.fetchOne(db, sql: "SELECT count(*) FROM notification")
        #expect(count == 200)
        let ends = try Int64.fetchAll(db, sql: "SELECT lastSequence FROM inbox")
        #expect(ends == [Int64](repeating: 20, count: 10))
        #expect(try connection.commit() == "COMMIT")
        await store.close()
    }

    /// Changes of kept records in one request, two of them for the same record.
    private static var editsOfKept: [ChangeToAppend] {
        func edit(
            _ name: String, _ operation: ChangeOperation, _ fields: RecordFields? = nil
        ) -> ChangeToAppend {
            var change = Sample.change(name, operation)
            let isWhole = operation == .create
            change.after = fields.map { RecordImage($0, completeness: isWhole ? .full : .partial) }
            return ChangeToAppend(change, key: nil)
        }
        return [
            edit("a", .create, ["x": .integer(1), "y": .integer(1)]),
            edit("b", .create, ["x": .integer(2)]),
            edit("a", .update, ["y": .integer(3)]), edit("a", .update, ["x": .integer(4)]),
            edit("b", .delete), edit("b", .update, ["x": .integer(5)]),
            edit("c", .update, ["x": .integer(6)]), edit("a", .delete),
            edit("a", .create, ["z": .integer(7)]), edit("c", .update, ["y": .integer(8)]),
        ]
    }

    @Test func `changes of kept records are completed together as they would be one by one`()
        async throws
    {
        var bodies: [[String]] = []
        for size in [1, 3, Self.editsOfKept.count] {
            let test = try TestPlace()
            let store = try RelayStore.open(
                try test.place(), as: .forTests(), settings: .forTests)
            try await store.save(
                ContainerSettings(key: Sample.container, topics: []), at: Sample.moment(0))
            try await store.extendSchema(
                of: Sample.container,
                with: [RecordTypeDefinition(Sample.identifier("Artwork"), isInferred: true)])
            let edits = Self.editsOfKept
            for start in stride(from: 0, to: edits.count, by: size) {
                _ = try await store.append(
                    Array(edits[start...].prefix(size)), container: Sample.container,
                    source: Sample.source, at: Sample.moment(1))
            }
            bodies.append(
                try await store.read {
                    try String.fetchAll($0, sql: "SELECT body FROM logEntry ORDER BY position")
                })
            await store.close()
        }
        #expect(bodies[0].count == Self.editsOfKept.count)
        #expect(bodies[1] == bodies[0] && bodies[2] == bodies[0])
    }

    @Test func `the records that a request changes are read together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try await store.extendSchema(
            of: Sample.container,
            with: [RecordTypeDefinition(Sample.identifier("Artwork"), isInferred: true)])
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let container = try commit.container(Sample.container)
        func run() throws {
            let step = AppendStep(
                changes: try (1...200).map { try PreparedChange(Sample.unkeyed("art-\($0)")) },
                delivery: nil, source: Sample.source, now: Sample.moment(1), settings: .forTests)
            _ = try step.run(in: &commit, container: container)
        }
        // In the first round the records are new, and are counted for the container's quota
        // together.
        for _ in 0..<2 {
            let before = connection.pipeline.roundTrips
            try run()
            #expect(connection.pipeline.roundTrips - before < 40)
        }
        let zones: [[Int64]] = try Row.fetchAll(
            commit.db,
            sql: """
                SELECT n_tup_ins, n_tup_upd, (SELECT position FROM recordZone)
                FROM pg_stat_xact_user_tables
                WHERE schemaname = '\(test.schema)' AND relname = 'recordzone'
                """
        ).map { [$0[0], $0[1], $0[2]] }
        // The zone's row was created in the first round and updated at its end, and updated at the
        // start and end of the second.
        #expect(zones == [[1, 3, 400]])
        connection.rollBack()
        await store.close()
    }

    @Test func `notifications are marked as read together, each once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
        let db = Database(connection)
        try connection.begin()
        for statement in [
            "INSERT INTO user (container, name) SELECT id, 'ann' FROM container",
            "INSERT INTO inbox (owner, container, lastSequence) "
                + "SELECT id, container, 100 FROM user",
            """
            INSERT INTO notification (owner, sequence, position, subscriptionSerial,
                subscriptionID, database, notificationID, payload, createdAt, changedAt)
            SELECT id, n, n, 1, 's', 'public', decode(lpad(to_hex(n), 32, '0'), 'hex'), '{}', n, n
            FROM user, generate_series(1, 100) AS n
            """,
        ] {
            try db.execute(sql: statement)
        }
        let owner = try #require(try Int64.fetchOne(db, sql: "SELECT id FROM user"))
        let ids = try Data.fetchAll(
            db, sql: "SELECT notificationID FROM notification ORDER BY sequence"
        ).compactMap { UUIDBytes(bytes: $0) }
        let before = connection.pipeline.roundTrips
        let step = InboxStep(now: Sample.moment(5))
        let unknown = UUIDBytes(high: 9, low: 9)
        let known = try step.markRead(
            ids + ids + [unknown], of: owner, perUser: 1000, in: db)
        #expect(known == Set(ids) && ids.count == 100)
        _ = try step.markRead(ids, of: owner, perUser: 1000, in: db)
        try connection.settle()
        #expect(connection.pipeline.roundTrips - before < 15)
        let left = try Int64.fetchAll(
            db,
            sql: """
                SELECT count(*) FROM notification WHERE sequence = position + 100
                UNION ALL SELECT lastSequence FROM inbox
                """)
        #expect(left == [100, 200])
        connection.rollBack()
        await store.close()
    }

    @Test func `digests are closed together, each once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
        let db = Database(connection)
        try connection.begin()
        try db.execute(
            sql: """
                INSERT INTO digest (container, owner, subscription, device, reason, openedAt,
                    dueAt, decidedAt, deliveries, count, deliveryID, position, "offset",
                    subscriptionSerial, deviceSerial, body)
                SELECT container.id, 'ann', 'public/s' || n, 'phone', 'digest', 1, 1, 1, 2, 2,
                    decode(lpad(to_hex(n), 32, '0'), 'hex'), n, 0, 1, 1, '{}'
                FROM container, generate_series(1, 200) AS n
                """)
        let now = Sample.moment(2)
        let ids = try Int64.fetchAll(db, sql: "SELECT id FROM digest ORDER BY id")
        let digests = try ids.enumerated().map { number, id -> (digest: Digest, retry: RetryRow) in
            let delivery = Fixtures.delivery(at: UInt64(number + 1))
            let retry = Retry(delivery: delivery, attempts: 0, dueAt: now, reason: .together)
            return (
                digest: Digest(
                    id: id, deliveries: 2, count: 2, openedAt: now, newest: delivery),
                retry: try RetryRow(retry, StoredDelivery(delivery))
            )
        }
        let before = connection.pipeline.roundTrips
        let counts = try (1...2).map { _ in try RelayStore.close(digests, at: now, in: db) }
        try connection.settle()
        #expect(counts == [200, 0])
        #expect(connection.pipeline.roundTrips - before < 15)
        let left = try Int64.fetchAll(
            db, sql: "SELECT count(*) FROM retry UNION ALL SELECT folded FROM account")
        #expect(left == [200, 200])
        connection.rollBack()
        await store.close()
    }

    @Test func `dead letters are redriven together, each once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
        let db = Database(connection)
        try connection.begin()
        try db.execute(
            sql: """
                INSERT INTO deadLetter (deliveryID, container, position, "offset",
                    subscriptionSerial, deviceSerial, attempts, status, reason, endedAt, body)
                SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), container.id, n, 0, 1, 1, 3, 410,
                    'Unregistered', n, '{"gatewayEnvironment":"development","topic":"t"}'
                FROM container, generate_series(1, 200) AS n
                """)
        let ids = try Data.fetchAll(db, sql: "SELECT deliveryID FROM deadLetter")
        let container = try db.container(Sample.container)
        let before = connection.pipeline.roundTrips
        // One of the dead letters no longer exists.
        let count = try RelayStore.take(ids + [Data([9])], of: container, in: db) {
            try RelayStore.redrive($2, of: $1, at: Sample.moment(5), in: $0)
        }
        try connection.settle()
        #expect(count == 200)
        #expect(connection.pipeline.roundTrips - before < 15)
        let left = try Int64.fetchAll(
            db,
            sql: """
                SELECT count(*) FROM retry WHERE lane = 'development t' AND attempts = 0
                UNION ALL SELECT count(*) FROM deadLetter
                """)
        #expect(left == [200, 0])
        connection.rollBack()
        await store.close()
    }

    @Test func `notifications of many users are removed together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
        let db = Database(connection)
        try connection.begin()
        for statement in [
            """
            INSERT INTO user (container, name)
            SELECT container.id, 'u' || n FROM container, generate_series(1, 200) AS n
            """,
            "INSERT INTO inbox (owner, container, lastSequence) SELECT id, container, 2 FROM user",
            """
            INSERT INTO notification (owner, sequence, position, subscriptionSerial,
                subscriptionID, database, notificationID, payload, createdAt, changedAt)
            SELECT id, n, n, 1, 's', 'public', decode(lpad('7', 32, '0'), 'hex'), '{}', n, n
            FROM user, generate_series(1, 2) AS n
            """,
        ] {
            try db.execute(sql: statement)
        }
        let ends = try Row.fetchAll(
            db, sql: RelayStore.unchangedStatement, arguments: [1, 1000]
        ).map { InboxStep.End(owner: $0[0], sequence: $0[1]) }
        #expect(ends.count == 200)
        let before = connection.pipeline.roundTrips
        let dropped = try InboxStep.drop(ends, in: db)
        #expect(dropped == 200)
        #expect(connection.pipeline.roundTrips - before < 10)
        let left = try Int64.fetchAll(
            db,
            sql: """
                SELECT DISTINCT droppedSequence FROM inbox
                UNION ALL SELECT count(*) FROM notification
                """)
        #expect(left == [1, 200])
        connection.rollBack()
        await store.close()
    }

    /// Writing a row again walks over the versions that the transaction made before, and one
    /// deletion may delete a thousand records.
    @Test func `records that a client edits together update their zone once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let type: RecordType = Sample.identifier("Artwork")
        try await store.extendSchema(
            of: Sample.container, with: [RecordTypeDefinition(type, isInferred: true)])
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let rows = ShadowRows(
            place: RecordPlace(container: Sample.container, database: .public, owner: nil),
            container: try commit.container(Sample.container))
        let step = RecordEditStep(
            shadowRows: rows,
            editor: RecordEditor(userID: Sample.identifier("alice"), isServer: false),
            now: Sample.moment(1))
        func edits(_ kind: RecordEdit.Kind, _ numbers: Range<Int>) -> [RecordEdit] {
            numbers.map { number in
                let id = RecordID(recordName: Sample.identifier("r\(number)"))
                var edit = RecordEdit(kind, id, type: type)
                edit.fields = ["n": .integer(Int64(number))]
                edit.changeTag = kind == .create ? nil : "1"
                return edit
            }
        }
        func run(_ edits: [RecordEdit], _ atomicity: EditAtomicity) throws -> Int {
            var allowance = RecordEditAllowance(CascadeRoom(part: 32))
            let outcomes = try step.run(edits, atomicity, within: &allowance, in: &commit)
            return outcomes.count(where: \.isRefusal)
        }
        func noted() throws -> [Int64] {
            let row = try Row.fetchOne(
                commit.db,
                sql: """
                    SELECT n_tup_ins, n_tup_upd, (SELECT position FROM recordZone)
                    FROM pg_stat_xact_user_tables
                    WHERE schemaname = '\(test.schema)' AND relname = 'recordzone'
                    """)
            let numbers: [Int64]? = row.map { [$0[0], $0[1], $0[2]] }
            return try #require(numbers)
        }
        var refused = try run(edits(.create, 0..<20), .independent)
        #expect(refused == 0)
        #expect(try noted() == [1, 0, 20])
        refused = try run(edits(.create, 20..<40), .allOrNothing)
        #expect(refused == 0)
        #expect(try noted() == [1, 1, 40])
        // A request that is undone leaves the zone unchanged.
        refused = try run(edits(.create, 40..<50) + edits(.update, 90..<91), .allOrNothing)
        #expect(refused == 1)
        #expect(try noted() == [1, 1, 40])
        connection.rollBack()
        await store.close()
    }
}
