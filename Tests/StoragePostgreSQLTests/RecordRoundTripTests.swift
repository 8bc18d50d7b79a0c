import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// How often whoever looks for many records waits for a real server, while others wait for them.
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

    @Test func `references that must lead somewhere are looked for together`() async throws {
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
        // Of those that are not there the first is told.
        let missing = ["x", "y"].map { Self.create($0).recordID }
        var other = Self.create("b")
        other.validated = targets.prefix(20).map(\.recordID) + missing
        let refused = try run([other])
        #expect(refused == [.refused(.missingReference(missing[0]))])
        connection.rollBack()
        await store.close()
    }

    @Test func `zones that have nothing of a type are passed together`() async throws {
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

    @Test func `what changed in many zones is asked for together`() async throws {
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

    /// All who write wait for a request that is one whole.
    @Test func `what the operations of one request ask is asked together`() async throws {
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
        // One that comes again keeps the others from nothing.
        let start = connection.pipeline.roundTrips
        let others = (1...150).map { edit(.create, "s\($0)") }
        let again = try run(
            [edit(.create, "a"), edit(.forceUpdate, "a")] + others + [edit(.forceUpdate, "a")])
        #expect(connection.pipeline.roundTrips - start < 50)
        #expect(again.count == 153 && again.filter(\.isRefusal).isEmpty)
        // What goes along with a deletion is gone for the operations after it, too.
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

    @Test func `where quotas are small each operation asks once for what there is`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        try await store.extendSchema(
            of: Sample.container, with: [RecordTypeDefinition(Self.type, isInferred: true)])
        let connection = try test.transaction()
        // For two hundred of the largest records there is no room, and for each of these there is.
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
        // What the container has, and what the user has.
        #expect(connection.pipeline.roundTrips - before < 500)
        #expect(outcomes.count == 200 && outcomes.filter(\.isRefusal).isEmpty)
        connection.rollBack()
        await store.close()
    }

    /// Whoever writes a row again walks over all that the transaction made of it before.
    @Test func `many changes of records go in part by part, those of one the more so`()
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
        // Without a version, a key and what is kept nothing but the log is written.
        let plain = try run((1...100).map { _ in Sample.unkeyed("a") })
        #expect(plain == 100)
        let others = try run((1...300).map { Sample.unkeyed("b\($0)", version: 1) })
        #expect(others == AppendStep.mostRows)
        let again = try run((Int64(1)...100).map { Sample.unkeyed("c", version: $0) })
        let most = 1 + AppendStep.mostRows / AppendStep.rowsOfOneAgain
        #expect(again == most)
        // What goes in with another part is asked about with that one.
        let before = connection.pipeline.roundTrips
        let first = try run((Int64(1)...1000).map { Sample.unkeyed("e", version: $0) })
        #expect(first == most)
        #expect(connection.pipeline.roundTrips - before < 10)
        connection.rollBack()
        // The rest goes in after it.
        let changes = (Int64(1)...100).map { Sample.unkeyed("d", version: $0) }
        let outcomes = try await store.append(
            changes, container: Sample.container, source: Sample.source, at: Sample.moment(1))
        #expect(outcomes.count == most)
        await store.close()
    }
}
