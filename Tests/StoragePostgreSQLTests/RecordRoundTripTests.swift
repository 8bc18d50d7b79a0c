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
        let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
        try connection.begin()
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
}
