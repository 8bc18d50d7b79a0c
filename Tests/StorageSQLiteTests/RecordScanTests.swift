import Dispatch
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Large reads are done in slices and in turns, and leave readers free for others.
@Suite struct RecordScanTests {
    private static let type: RecordType = Sample.identifier("Artwork")
    private static let other: RecordType = Sample.identifier("Other")
    private static let alice: UserID = Sample.identifier("alice")
    private static let place = RecordPlace(
        container: Sample.container, database: .private, owner: alice)

    private static func zone(_ name: String) -> ZoneID {
        ZoneID(zoneName: name) ?? .default
    }

    private static func id(_ name: String, _ zoneID: ZoneID = .default) -> RecordID {
        RecordID(recordName: Sample.identifier(name), zoneID: zoneID)
    }

    /// Returns a store with three zones, each with two records, one of them deleted, and records of
    /// another type.
    private static func ready() async throws -> RelayStore {
        let store = try TemporaryStore().open()
        try await store.save(
            ContainerSettings(key: Sample.container, topics: ["t"]), at: Sample.moment(0))
        let zones = [zone("a"), zone("b"), zone("c")]
        _ = try await store.createZones(zones, in: place)
        var edits: [RecordEdit] = []
        for zoneID in zones {
            for (name, type) in [("1", type), ("2", type), ("3", type), ("4", other)] {
                var edit = RecordEdit(.create, id(name, zoneID), type: type)
                edit.fields = ["title": .string("\(zoneID.zoneName)\(name)")]
                edits.append(edit)
            }
            edits.append(RecordEdit(.forceDelete, id("2", zoneID), type: type))
        }
        let outcomes = try await store.modify(
            edits, in: place, by: RecordEditor(userID: alice, isServer: false),
            atomicity: .independent,
            additions: [type, other].map { RecordTypeDefinition($0, isInferred: true) },
            at: Sample.moment(1))
        #expect(outcomes.allSatisfy { !$0.isRefusal })
        return store
    }

    @Test(arguments: [1, 2, 3, 5, 100])
    func `a scan of all zones continues where a slice ended`(rows: Int) async throws {
        let store = try await Self.ready()
        var scan = RecordScan(of: Self.type, in: Self.place, rows: rows)
        var found: [String] = []
        for _ in 0..<20 {
            let slice = try await store.scanRecords(scan, into: [String]()) { found, scanned in
                #expect(scanned.bytes > 256)
                if case .string(let title)? = scanned.record.fields["title"] {
                    found.append(title)
                }
                return true
            }
            found += slice.value
            scan.cursor = slice.cursor
            if slice.cursor == nil { break }
            #expect(slice.rows >= min(rows, 3))
        }
        #expect(found == ["a1", "a3", "b1", "b3", "c1", "c3"])
        await store.close()
    }

    @Test func `a slice ends with its time, but not before one row`() async throws {
        let store = try await Self.ready()
        var scan = RecordScan(
            of: Self.type, in: Self.place, zoneID: Self.zone("b"), turn: { { true } })
        let first = try await store.scanRecords(scan, into: 0) { count, _ in
            count += 1
            return true
        }
        #expect(first.value == 1)
        #expect(first.cursor == Self.id("1", Self.zone("b")))
        // The mark of the deleted record is a row too.
        scan.cursor = first.cursor
        let second = try await store.scanRecords(scan, into: 0) { count, _ in
            count += 1
            return true
        }
        #expect(second.value == 0)
        #expect(second.cursor == Self.id("2", Self.zone("b")))
        await store.close()
    }

    @Test func `scans leave readers free for others`() async throws {
        let store = try await Self.ready()
        let gate = DispatchSemaphore(value: 0)
        let begun = AsyncStream.makeStream(of: Void.self)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for _ in 0..<8 {
                tasks.addTask {
                    _ = try await store.scanRecords(
                        RecordScan(of: Self.type, in: Self.place), into: ()
                    ) { _, _ in
                        begun.continuation.yield()
                        gate.wait()
                        return false
                    }
                }
            }
            for await _ in begun.stream.prefix(1) {}
            // Regression: five queries once took all five readers.
            for _ in 0..<20 {
                let found = try await store.records(
                    named: [Self.id("1", Self.zone("a"))], in: Self.place)
                #expect(found.count == 1)
            }
            for _ in 0..<8 { gate.signal() }
            try await tasks.waitForAll()
        }
        await store.close()
    }
}
