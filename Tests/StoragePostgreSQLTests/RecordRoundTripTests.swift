import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Round trips to a real server for requests with many records, for which other requests wait.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct RecordRoundTripTests {
    private static let type: RecordType = Sample.identifier("Artwork")
    private static let alice: UserID = Sample.identifier("alice")

    private static func create(_ name: String) -> RecordEdit {
        var edit = RecordEdit(
            .create, RecordID(recordName: Sample.identifier(name)), type: type)
        edit.fields = ["title": .string(name)]
        return edit
    }

    @Test func `targets of validated references are looked up together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try await store.extendSchema(
            of: Sample.container, with: [RecordTypeDefinition(Self.type, isInferred: true)])
        let connection = try test.transaction()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let rows = ShadowRows(
            place: RecordPlace(container: Sample.container, database: .public, owner: nil),
            container: try commit.container(Sample.container))
        func run(_ edits: [RecordEdit]) throws -> [RecordEditOutcome] {
            let step = RecordEditStep(
                shadowRows: rows, editor: RecordEditor(userID: Self.alice, isServer: false),
                now: Sample.moment(1))
            var allowance = RecordEditAllowance(CascadeRoom(part: 32))
            return try step.run(edits, .independent, within: &allowance, in: &commit)
        }
        let targets = (1...300).map { Self.create("t\($0)") }
        _ = try run(targets)
        var edit = Self.create("a")
        edit.validated = targets.map(\.recordID)
        let before = connection.pipeline.roundTrips
        let outcomes = try run([edit])
        #expect(connection.pipeline.roundTrips - before < 60)
        guard case .saved? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        // The refusal names the first of the missing records.
        let missing = ["x", "y"].map { Self.create($0).recordID }
        var other = Self.create("b")
        other.validated = targets.prefix(20).map(\.recordID) + missing
        let refused = try run([other])
        #expect(refused == [.refused(.missingReference(missing[0]))])
        connection.rollBack()
        await store.close()
    }

    @Test func `zones without records of a type are skipped together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let own = RecordPlace(
            container: Sample.container, database: .private, owner: Self.alice)
        let zones = (0..<300).compactMap { ZoneID(zoneName: "zone-\($0)") }
        _ = try await store.createZones(zones, in: own)
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin()
        let db = Database(connection)
        let scanner = RecordScanner(
            scan: RecordScan(of: Self.type, in: own), isOver: { false },
            shadowRows: ShadowRows(place: own, container: try db.container(Sample.container)))
        let before = connection.pipeline.roundTrips
        let step = { (count: inout Int, _: ScannedRecord) -> Bool in
            count += 1
            return true
        }
        let slice = try scanner.run(into: 0, step, in: db)
        #expect(slice.value == 0 && slice.rows == 300 && slice.cursor == nil)
        #expect(connection.pipeline.roundTrips - before < 60)
        connection.rollBack()
        await store.close()
    }

    @Test func `zones of one request are created together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.transaction()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let rows = ShadowRows(
            place: RecordPlace(
                container: Sample.container, database: .private, owner: Self.alice),
            container: try commit.container(Sample.container))
        let zones = (0..<200).compactMap { ZoneID(zoneName: "zone-\($0)") }
        let before = connection.pipeline.roundTrips
        let made = try rows.create(zones, in: commit)
        #expect(connection.pipeline.roundTrips - before < 20)
        #expect(made.map(\.zoneID) == zones)
        connection.rollBack()
        await store.close()
    }

    @Test func `changes in many zones are read together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let own = RecordPlace(
            container: Sample.container, database: .private, owner: Self.alice)
        let zones = (0..<200).compactMap { ZoneID(zoneName: "zone-\($0)") }
        _ = try await store.createZones(zones, in: own)
        let edits = zones.map { zone -> RecordEdit in
            var edit = Self.create("r")
            edit.recordID = RecordID(recordName: edit.recordID.recordName, zoneID: zone)
            return edit
        }
        _ = try await store.modify(
            edits, in: own, by: RecordEditor(userID: Self.alice, isServer: false),
            atomicity: .independent, additions: [RecordTypeDefinition(Self.type, isInferred: true)],
            at: Sample.moment(1))
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        try connection.begin()
        let db = Database(connection)
        let rows = ShadowRows(place: own, container: try db.container(Sample.container))
        let before = connection.pipeline.roundTrips
        let found = try ZoneChangesReading(
            rows: rows, questions: zones.map { ZoneChangesQuestion($0, after: .start, rows: 200) },
            db: db
        ).run(within: 4 << 20)
        #expect(connection.pipeline.roundTrips - before < 30)
        #expect(found.compactMap(\.zone?.zoneID) == zones)
        #expect(found.allSatisfy { $0.page.elements.count == 1 && !$0.page.hasMore })
        connection.rollBack()
        await store.close()
    }

    /// All other writers wait for an atomic request.
    @Test func `the operations of one request read together what they need`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try await store.extendSchema(
            of: Sample.container, with: [RecordTypeDefinition(Self.type, isInferred: true)])
        let own = RecordPlace(
            container: Sample.container, database: .private, owner: Self.alice)
        let zone = try #require(ZoneID(zoneName: "zone"))
        _ = try await store.createZones([zone], in: own)
        let connection = try test.transaction()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let rows = ShadowRows(place: own, container: try commit.container(Sample.container))
        func run(
            _ edits: [RecordEdit], _ atomicity: EditAtomicity = .allOrNothing
        ) throws -> [RecordEditOutcome] {
            let step = RecordEditStep(
                shadowRows: rows, editor: RecordEditor(userID: Self.alice, isServer: false),
                now: Sample.moment(1))
            var allowance = RecordEditAllowance(CascadeRoom(part: 32))
            return try step.run(edits, atomicity, within: &allowance, in: &commit)
        }
        func edit(_ kind: RecordEdit.Kind, _ name: String) -> RecordEdit {
            let id = RecordID(recordName: Sample.identifier(name), zoneID: zone)
            var edit = RecordEdit(kind, id, type: Self.type)
            edit.fields = ["title": .string(name)]
            return edit
        }
        let before = connection.pipeline.roundTrips
        let created = try run((1...200).map { edit(.create, "r\($0)") })
        let changed = try run((1...200).map { edit(.forceUpdate, "r\($0)") })
        #expect(connection.pipeline.roundTrips - before < 80)
        let refused = (created + changed).filter(\.isRefusal)
        #expect(created.count == 200 && changed.count == 200 && refused.isEmpty)
        // A record that occurs twice does not keep the other operations from being read together.
        let start = connection.pipeline.roundTrips
        let others = (1...150).map { edit(.create, "s\($0)") }
        let again = try run(
            [edit(.create, "a"), edit(.forceUpdate, "a")] + others + [edit(.forceUpdate, "a")])
        #expect(connection.pipeline.roundTrips - start < 50)
        #expect(again.count == 153 && again.filter(\.isRefusal).isEmpty)
        // A record that a deletion takes along is gone for the following operations too.
        var child = edit(.create, "child")
        child.wire = ["parent": ["recordName": "r1", "action": "DELETE_SELF"]]
        _ = try run([child])
        let head = commit.head
        let gone = try run([edit(.forceDelete, "r1"), edit(.forceDelete, "child")], .independent)
        #expect(gone.filter(\.isRefusal).isEmpty)
        #expect(commit.head.rawValue - head.rawValue == 2)
        connection.rollBack()
        await store.close()
    }

    @Test func `with small quotas each operation reads the counts once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try await store.extendSchema(
            of: Sample.container, with: [RecordTypeDefinition(Self.type, isInferred: true)])
        let connection = try test.transaction()
        // There is room for each record, but not for two hundred of the largest size, so each
        // operation must count.
        var quotas = Quotas()
        quotas[.userRecordBytes] = 100 << 20
        var commit = OpenCommit(Database(connection), head: .start, quotas: quotas)
        let rows = ShadowRows(
            place: RecordPlace(
                container: Sample.container, database: .private, owner: Self.alice),
            container: try commit.container(Sample.container))
        let step = RecordEditStep(
            shadowRows: rows, editor: RecordEditor(userID: Self.alice, isServer: false),
            now: Sample.moment(1))
        var allowance = RecordEditAllowance(CascadeRoom(part: 32))
        let before = connection.pipeline.roundTrips
        let outcomes = try step.run(
            (1...200).map { Self.create("r\($0)") }, .allOrNothing, within: &allowance, in: &commit)
        // Each operation asks for the container's use and for the user's.
        #expect(connection.pipeline.roundTrips - before < 500)
        #expect(outcomes.count == 200 && outcomes.filter(\.isRefusal).isEmpty)
        connection.rollBack()
        await store.close()
    }

    /// Writing a row again walks over all versions of it that the transaction made before.
    @Test func `many changes of records are written in parts, and of one record in smaller ones`()
        async throws
    {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.transaction()
        var commit = OpenCommit(Database(connection), head: .start, quotas: Quotas())
        let container = try commit.container(Sample.container)
        func run(_ changes: [ChangeToAppend]) throws -> Int {
            let step = AppendStep(
                changes: try changes.map { try PreparedChange($0) }, delivery: nil,
                source: Sample.source, now: Sample.moment(1), settings: .forTests)
            return try step.run(in: &commit, container: container).count
        }
        // A change without a version or a key, of a type that is not kept, only writes to the log.
        let plain = try run((1...100).map { _ in Sample.unkeyed("a") })
        #expect(plain == 100)
        let others = try run((1...300).map { Sample.unkeyed("b\($0)", version: 1) })
        #expect(others == AppendStep.mostRows)
        let again = try run((Int64(1)...100).map { Sample.unkeyed("c", version: $0) })
        let most = 1 + AppendStep.mostRows / AppendStep.rowsOfOneAgain
        #expect(again == most)
        // The remaining changes are not looked up until their part is written.
        let before = connection.pipeline.roundTrips
        let first = try run((Int64(1)...1000).map { Sample.unkeyed("e", version: $0) })
        #expect(first == most)
        #expect(connection.pipeline.roundTrips - before < 10)
        connection.rollBack()
        // `append` writes the remaining parts afterwards.
        let changes = (Int64(1)...100).map { Sample.unkeyed("d", version: $0) }
        let outcomes = try await store.append(
            changes, container: Sample.container, source: Sample.source, at: Sample.moment(1))
        #expect(outcomes.count == most)
        await store.close()
    }
}
