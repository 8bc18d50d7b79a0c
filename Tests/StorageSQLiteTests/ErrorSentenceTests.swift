import Foundation
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Error messages name the real cause, and only damage is called damage.
@Suite struct ErrorSentenceTests {
    static let cases: [(code: Int32, message: String?, start: String)] = [
        (8, nil, "/file cannot be used: it is read-only"),
        (8 | 5 << 8, nil, "/file cannot be used: it is read-only"),
        (3, nil, "/file cannot be used: it is read-only"),
        (14, nil, "/file cannot be used: there is no such file"),
        (10, nil, "/file cannot be used: the disk could not read or write it (SQLite 10)"),
        (10 | 1 << 8, nil, "/file cannot be used: the disk could not read or write it"),
        (7, nil, "/file cannot be used: there is not enough memory for it"),
        (13, nil, "no room on the disk"),
        (5, nil, "too much is waiting to be written: the database is locked"),
        (11, "malformed", "/file is damaged: SQLite error 11"),
        (26, nil, "/file cannot be used: it is not a store of Belfry: it does not begin as"),
        (10 | 32 << 8, nil, "/file is damaged: page "),
    ]

    @Test(arguments: cases)
    func `each failure at the start has its sentence`(
        code: Int32, message: String?, start: String
    ) {
        let failure = EmbeddedError(code, message)
        let sentence = "\(StorageError.opening("/file", failed: failure))"
        #expect(sentence.hasPrefix(start), "\(sentence)")
    }

    @Test(arguments: [
        ("Page 73: unable to get the page. error code=266", "cannot be used: the disk could not"),
        ("Page 73: unable to get the page. error code=8202", "is damaged: "),
        ("Page 73: btreeInitPage() returns error code 11", "is damaged: "),
    ])
    func `what a check of the pages finds has its sentence`(line: String, start: String) throws {
        let lines = ["*** in database main ***\n\(line)"]
        let error = try #require(StorageError.checking("/file", found: lines))
        #expect("\(error)".hasPrefix("/file \(start)"), "\(error)")
        #expect(StorageError.checking("/file", found: ["ok"]) == nil)
    }

    /// It is not known whether such a page is sound.
    @Test func `a page that cannot be read is no finding of a check`() throws {
        let unread = "Tree 5 page 73: unable to get the page. error code=266"
        let error = #expect(throws: StorageError.self) {
            try StoreReport.problems(of: "/file", checked: [unread, "Page 80: never used"])
        }
        let told = error.map { "\($0)" } ?? ""
        #expect(told.hasPrefix("/file cannot be used: the disk could not"), "\(told)")
        let damage = "Tree 5 page 73: unable to get the page. error code=8202"
        #expect(try StoreReport.problems(of: "/file", checked: [damage]) == [damage])
        #expect(try StoreReport.problems(of: "/file", checked: ["ok"]) == [])
    }

    @Test func `a page without its checksum ends all writing`() {
        let failure = EmbeddedError(10 | 32 << 8)
        #expect(failure.isDamage && StorageError.verdict(on: failure) == .fatal)
        guard case .damaged? = StorageError.translate(failure, path: "/file") as? StorageError
        else {
            Issue.record("not damage")
            return
        }
    }

    /// Opening a named pipe for reading blocks until a process opens it for writing.
    @Test(.timeLimit(.minutes(15)), arguments: ["", "-wal", "-shm", "-witness", ".lock"])
    func `a pipe in place of a file is reported and does not block`(
        ending: String
    ) async throws {
        let home = try TemporaryStore()
        await (try home.open()).close()
        let name = home.path + ending
        try? FileManager.default.removeItem(atPath: name)
        #expect(mkfifo(name, 0o600) == 0)
        let error = #expect(throws: StorageError.self) { _ = try home.open() }
        #expect(
            error.map { "\($0)" } == "\(name) cannot be used: it is not a regular file")
    }

    @Test(arguments: ["", "-wal", "-shm", "-witness"])
    func `a folder in place of a file is reported`(ending: String) async throws {
        let home = try TemporaryStore()
        await (try home.open()).close()
        let name = home.path + ending
        try? FileManager.default.removeItem(atPath: name)
        try FileManager.default.createDirectory(
            atPath: name, withIntermediateDirectories: false)
        let error = #expect(throws: StorageError.self) { _ = try home.open() }
        let sentence = error.map { "\($0)" } ?? ""
        #expect(sentence.contains("\(name) cannot be used"), "\(sentence)")
        #expect(sentence.lowercased().contains("is a directory"), "\(sentence)")
    }

    @Test func `a backup that cannot be written says why`() async throws {
        let home = try TemporaryStore()
        await (try home.open()).close()
        let target = home.path + ".none/copy"
        let error = #expect(throws: StorageError.self) {
            try RelayStore.backUp(path: home.path, to: target)
        }
        #expect(
            error.map { "\($0)" }
                == "\(target).partial cannot be used: it cannot be created: "
                + "No such file or directory")
    }

    @Test func `a start waits while there is no room for the witness`() throws {
        let home = try TemporaryStore()
        let name = home.path + StoreWitness.ending
        try FileManager.default.createSymbolicLink(
            atPath: name, withDestinationPath: "/dev/full")
        let witness = try StoreWitness(of: home.path)
        let record = WitnessRecord(
            identity: UUIDBytes(high: 1, low: 2), commits: 1, head: LogPosition(1), salt: 0,
            isSealed: true)
        let error = #expect(throws: StorageError.self) { try witness.noteAtStart(record) }
        #expect(error?.passes == true)
        #expect("\(try #require(error))".contains("\(name): it cannot be written: No space left"))
        #expect(throws: StorageError.self) { try witness.noteFolding(after: record) }
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func `a lack of room at the start is waited for`(code: Int32) {
        #expect(StorageError.failed("/file", "it cannot be written", code).passes)
        #expect(!StorageError.failed("/file", "it cannot be written", EIO).passes)
    }

    @Test func `a lack of room lets the witness lag, and other failures are errors`() {
        #expect(WitnessFailure(code: ENOSPC).isNoRoom && WitnessFailure(code: EDQUOT).isNoRoom)
        #expect(!WitnessFailure(code: EIO).isNoRoom)
        // Whether writing or syncing failed, what was committed is in the store's file.
        for code in [ENOSPC, EDQUOT] {
            #expect(throws: Never.self) {
                try CommitLedger.leavingBehind { () throws(WitnessFailure) in
                    throw WitnessFailure(code: code)
                }
            }
        }
        #expect(throws: StorageError.self) {
            try CommitLedger.leavingBehind { () throws(WitnessFailure) in
                throw WitnessFailure(code: EIO)
            }
        }
    }
}
