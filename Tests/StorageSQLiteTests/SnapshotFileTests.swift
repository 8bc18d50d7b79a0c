import Foundation
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

@Suite struct SnapshotFileTests {
    private static let sections: [[UInt8]] = [
        Array("head".utf8), [], (0..<9_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }, [1],
    ]

    private static func read(_ path: String) throws -> [[UInt8]]? {
        guard let reading = try SnapshotFile.Reading(path) else { return nil }
        var sections: [[UInt8]] = []
        while let section = try reading.next() { sections.append(section) }
        return sections
    }

    @Test func `a snapshot reads back as written`() throws {
        let path = try TemporaryStore().path + "-snapshot-a"
        #expect(try Self.read(path) == nil)
        try SnapshotFile.write(Self.sections, to: path)
        #expect(try Self.read(path) == Self.sections)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func `no byte of a snapshot can change or be missing unnoticed`() throws {
        let path = try TemporaryStore().path + "-snapshot-a"
        try SnapshotFile.write([Array("one".utf8), Array("two".utf8)], to: path)
        let whole = try Data(contentsOf: URL(filePath: path))
        for index in whole.indices {
            var spoilt = whole
            spoilt[index] ^= 0x10
            try spoilt.write(to: URL(filePath: path))
            #expect(throws: SnapshotFailure.self) { try Self.read(path) }
            try whole.prefix(index).write(to: URL(filePath: path))
            #expect(throws: SnapshotFailure.self) { try Self.read(path) }
        }
        try (whole + [0]).write(to: URL(filePath: path))
        #expect(throws: SnapshotFailure("there is data after its end")) { try Self.read(path) }
    }

    @Test(arguments: 0...18)
    func `a kill while a snapshot is written leaves the previous one`(step: Int) async throws {
        let home = try TemporaryStore()
        let path = home.path
        await #expect(processExitsWith: .signal(SIGKILL)) {
            [path = path as String, step = step as Int] in
            let store = try RelayStore.open(path: path, settings: .forTests)
            try SnapshotFile.write([[1, 2, 3]], to: path + "-snapshot-old")
            _ = try await store.record(Self.record(1))
            var steps = 0
            try SnapshotFile.write(Self.sections, to: path + "-snapshot-new") {
                if steps == step { kill(getpid(), SIGKILL) }
                steps += 1
            }
            _ = try await store.record(Self.record(2))
            kill(getpid(), SIGKILL)
        }
        let store = try home.open()
        // The snapshot that the store has recorded is there completely. The other one is there
        // completely or not at all.
        let record = try #require(try await store.recordedSnapshot())
        let isNew = record == Self.record(2)
        #expect(try Self.read(path + "-snapshot-old") == [[1, 2, 3]])
        let new = try Self.read(path + "-snapshot-new")
        #expect(new == Self.sections || new == nil && !isNew)
        SnapshotFile.removeAll(
            stem: path + "-snapshot-", except: path + (isNew ? "-snapshot-new" : "-snapshot-old"))
        let directory = URL(filePath: path).deletingLastPathComponent().path
        let left = try FileManager.default.contentsOfDirectory(atPath: directory)
            .filter { $0.contains("-snapshot-") }
        #expect(left.count == 1)
        await store.close()
    }

    private static func record(_ number: UInt64) -> SnapshotRecord {
        SnapshotRecord(
            identity: UUIDBytes(high: 0, low: number), position: LogPosition(number),
            savedAt: Timestamp(seconds: Int64(number)))
    }
}
