import Foundation
import RelayModel
import RelayTestKit
import Testing

@testable import LogShipping

/// Destinations of backups: their URLs, names and lists.
@Suite struct DestinationTests {
    @Test func `a folder keeps what was put there, and refuses to overwrite it`() async throws {
        let folder = URL(filePath: try TemporaryStore().path).deletingLastPathComponent().path
        let destination = FolderDestination(folder)
        try await destination.put("a/b/c", [1, 2, 3])
        try await destination.put("a/b/c", [1, 2, 3])
        let failure = await #expect(throws: DestinationFailure.self) {
            try await destination.put("a/b/c", [1, 2, 4])
        }
        #expect(failure?.kind == .taken)
        let shorter = await #expect(throws: DestinationFailure.self) {
            try await destination.put("a/b/c", [1, 2])
        }
        #expect(shorter?.kind == .taken)
        #expect(try await destination.get("a/b/c", atMost: 3) == [1, 2, 3])
        #expect(try await destination.get("a/b/d", atMost: 3) == nil)
        await #expect(throws: DestinationFailure.self) {
            try await destination.get("a/b/c", atMost: 2)
        }
        #expect(try await destination.names(below: "a/") == ["a/b/c"])
        try await destination.remove("a/b/c")
        try await destination.remove("a/b/c")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }

    @Test func `a list that is too long is refused as incomplete`() async throws {
        let folder = URL(filePath: try TemporaryStore().path).deletingLastPathComponent().path
        let destination = FolderDestination(folder, writer: FileWriter(), mostNames: 2)
        for name in ["a/b", "a/c"] { try await destination.put(name, [1]) }
        #expect(try await destination.names(below: "").sorted() == ["a/b", "a/c"])
        try await destination.put("d", [1])
        let failure = await #expect(throws: DestinationFailure.self) {
            try await destination.names(below: "")
        }
        #expect(failure?.kind == .refused)
    }

    @Test func `half-written files of a crash are removed together with their folder`() async throws
    {
        let folder = URL(filePath: try TemporaryStore().path).deletingLastPathComponent().path
        let destination = FolderDestination(folder)
        for name in ["a/b/c", "a/d", "a/k/l"] { try await destination.put(name, [1]) }
        let files = FileManager.default
        try files.createDirectory(
            atPath: "\(folder)/a/e", withIntermediateDirectories: false)
        for name in ["a/b/f.partial", "a/e/g.partial"] {
            #expect(files.createFile(atPath: "\(folder)/\(name)", contents: Data([1])))
        }
        // Besides the file, this removes what interrupted writes left behind, which is in no list.
        try await destination.remove("a/b/c")
        #expect(try files.contentsOfDirectory(atPath: "\(folder)/a").sorted() == ["d", "k"])
        for name in ["a/d", "a/k/l"] { try await destination.remove(name) }
        #expect(try files.contentsOfDirectory(atPath: folder) == [])
    }

    @Test(arguments: [
        (ENOSPC, DestinationFailure.Kind.away, "there is no room left; make room on its disk"),
        (EIO, .away, "its disk does not work"),
        (EROFS, .refused, "its disk is mounted for reading only"),
    ])
    func `a disk error is described in a sentence and leaves nothing behind`(
        code: Int32, kind: DestinationFailure.Kind, words: String
    ) async throws {
        let folder = URL(filePath: try TemporaryStore().path).deletingLastPathComponent().path
        // The first bytes still fit, as on a disk that becomes full.
        let full = FileWriter { file, bytes in
            if bytes.count > 2 { return FileWriter().call(file, bytes.prefix(1)) }
            errno = code
            return -1
        }
        let failure = await #expect(throws: DestinationFailure.self) {
            try await FolderDestination(folder, writer: full).put("a/b", [1, 2, 3])
        }
        #expect(failure?.kind == kind)
        let sentence = failure?.description ?? ""
        #expect(sentence.hasPrefix("file://\(folder): a/b cannot be written: \(words)"))
        #expect(!sentence.contains("NSCocoa") && !sentence.contains("Error Domain"))
        #expect(try await FolderDestination(folder).names(below: "") == [])
        // A partly written file is not in the way once there is room.
        try await FolderDestination(folder).put("a/b", [1, 2, 3])
    }

    @Test func `a file that a crash also left under its partial name is not overwritten`()
        async throws
    {
        let folder = URL(filePath: try TemporaryStore().path).deletingLastPathComponent().path
        try await FolderDestination(folder).put("a/b", [1, 2, 3])
        try FileManager.default.linkItem(
            atPath: "\(folder)/a/b", toPath: "\(folder)/a/b.partial")
        let full = FileWriter { _, _ in
            errno = ENOSPC
            return -1
        }
        await #expect(throws: DestinationFailure.self) {
            try await FolderDestination(folder, writer: full).put("a/b", [1, 2, 3])
        }
        #expect(try await FolderDestination(folder).get("a/b", atMost: 3) == [1, 2, 3])
        try await FolderDestination(folder).put("a/b", [1, 2, 3])
    }

    /// A backup that a list lacks may be removed with all that belongs to it, so an incomplete list
    /// is dangerous.
    @Test func `a list with an unreadable part is refused`() async throws {
        let folder = URL(filePath: try TemporaryStore().path).deletingLastPathComponent().path
        let chain = BackupName.chain(begun: Sample.moment(0), [1, 2, 3, 4, 5, 6, 7, 8])
        for name in ["\(chain)/base-1/part-1", "\(chain)/log-1", "lost+found/a"] {
            try await FolderDestination(folder).put(name, [1])
        }
        /// Returns a destination that fails to list one of the folders.
        func destination(
            without part: String, _ code: CocoaError.Code = .fileReadUnknown
        ) -> FolderDestination {
            FolderDestination(folder, writer: FileWriter()) { path in
                if path.contains(part) { throw CocoaError(code) }
                return try FileManager.default.contentsOfDirectory(atPath: path)
            }
        }
        for (code, kind) in [
            (CocoaError.Code.fileReadUnknown, DestinationFailure.Kind.away),
            (.fileReadNoPermission, .refused),
        ] {
            let failure = await #expect(throws: DestinationFailure.self) {
                try await destination(without: "base-1", code).names(below: "")
            }
            #expect(failure?.kind == kind)
            #expect(failure?.description.contains("\(chain)/base-1 cannot be listed") == true)
        }
        // Folders that the prefix excludes are not read.
        let segments = try await destination(without: "base-1").names(below: "\(chain)/log-")
        #expect(segments == ["\(chain)/log-1"])
        // The unreadable folder is not part of a backup, or it was removed meanwhile.
        #expect(try await destination(without: "lost+found").names(below: chain).count == 2)
        let left = try await destination(without: "base-1", .fileReadNoSuchFile).names(below: chain)
        #expect(left == ["\(chain)/log-1"])
    }

    @Test func `a missing folder is not created`() async throws {
        let folder = try TemporaryStore().path + "/none"
        let failure = await #expect(throws: DestinationFailure.self) {
            try await FolderDestination(folder).put("a", [1])
        }
        #expect(failure?.kind == .away)
        #expect(failure?.description.contains("there is no such folder") == true)
    }

    @Test(arguments: [
        ("file:///var/backups", BackupPlace.folder("/var/backups")),
        ("file:///var/backups/", .folder("/var/backups")),
        ("s3://bucket", .bucket("bucket", prefix: "")),
        ("s3://bucket/", .bucket("bucket", prefix: "")),
        ("s3://my.bucket-1/relay/one", .bucket("my.bucket-1", prefix: "relay/one/")),
        ("file://relative", nil), ("file:///", nil), ("s3://", nil), ("s3://B/x", nil),
        ("s3://bucket/a b", nil), ("s3://bucket/../x", nil), ("s3://bucket//x", nil),
        ("https://bucket", nil), ("", nil),
        ("file:///var/../etc", nil), ("file:///a/./b", nil), ("file:///a//b", nil),
        ("file:///a%2Fb", nil), ("file:///a?b", nil), ("file:///a\nb", nil),
        ("file:////", nil), ("file:///a/..b/c", .folder("/a/..b/c")),
        ("s3://bucket/a/..", nil), ("s3://bu/x", nil), ("s3://bucket/a?b", nil),
    ])
    func `the place of a destination is parsed from a URL or refused`(
        url: String, place: BackupPlace?
    ) {
        #expect(BackupPlace(url) == place)
    }

    @Test func `a backup name is parsed as it was written`() {
        let chain = BackupName.chain(begun: Sample.moment(0), [1, 2, 3, 4, 5, 6, 7, 8])
        let reach = BaseReach(since: 3, last: 9, moment: Sample.moment(5))
        let names: [BackupName] = [
            .segment(chain: chain, sequence: 17, moment: Sample.moment(7)),
            .part(chain: chain, base: 2, number: 12), .whole(chain: chain, base: 2, reach),
        ]
        for name in names { #expect(BackupName(name.text) == name) }
        for text in [
            "store", "\(chain)/x", "\(chain)/base-1/part-x", "a/log-1-2", "",
            "\(chain)/log-18446744073709551615-1", "\(chain)/base-99999999999999999999/part-1",
            "\(chain)/../log-1-1", "../\(chain)/log-1-1",
            "\(chain)/base-1/whole-1-9999999999999999999-1",
        ] {
            #expect(BackupName(text) == nil, "\(text)")
        }
    }

    @Test func `segments are looked up by the thousand that contains them`() {
        let chain = BackupName.chain(begun: Sample.moment(0), [1, 2, 3, 4, 5, 6, 7, 8])
        for sequence in [UInt64(1), 999, 1000, 12_345] {
            let name = BackupName.segment(
                chain: chain, sequence: sequence, moment: Sample.moment(7)
            ).text
            let thousands = [UInt64](0...13)
            let found = thousands.filter {
                name.hasPrefix(BackupName.segments(of: chain, thousand: $0))
            }
            #expect(found == [sequence / 1000])
        }
    }

    @Test func `the list of a bucket is read page by page`() {
        let page = BucketListing(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>"
                + "<Contents><Key>a&amp;b</Key></Contents><Contents><Key>c</Key></Contents>"
                + "<NextContinuationToken>t/=</NextContinuationToken></ListBucketResult>")
        #expect(page?.keys == ["a&b", "c"])
        #expect(page?.continuation == "t/=")
        #expect(BucketListing("<html></html>") == nil)
        #expect(
            BucketListing.error("<Error><Code>AccessDenied</Code><Message>No</Message></Error>")
                == "AccessDenied: No")
        #expect(
            BucketListing.error("<Error><Code>A</Code><Message>it&#39;s &#x22;B&#x22;</Message>")
                == "A: it's \"B\"")
        // A truncated list that does not say where it continues is refused.
        for token in ["", "<NextContinuationToken>&none;</NextContinuationToken>"] {
            let cut = "<ListBucketResult><IsTruncated>true</IsTruncated>\(token)</ListBucketResult>"
            #expect(BucketListing(cut) == nil)
        }
    }

    @Test func `a read from a destination that fails for a moment is retried`()
        async throws
    {
        let clock = TestClock()
        let memory = MemoryDestination()
        try await memory.put("a", [1])
        let away = DestinationFailure(.away, "slow down")
        let patient = PatientDestination(memory, clock: clock)
        memory.fail(away)
        await #expect(throws: away) { try await patient.get("a", atMost: 9) }
        memory.fail(nil)
        #expect(try await patient.get("a", atMost: 9) == [1])
        memory.fail(away)
        let reading = Task { try await patient.get("a", atMost: 9) }
        #expect(await Turns.yield(until: { clock.sleeperCount == 1 }))
        memory.fail(nil)
        clock.advance(by: .seconds(1))
        #expect(try await reading.value == [1])
        let refused = DestinationFailure(.refused, "no")
        memory.fail(refused)
        await #expect(throws: refused) { try await patient.names(below: "") }
        #expect(clock.sleeperCount == 0)
        // After enough attempts it gives up.
        memory.fail(away)
        let vain = Task { try await patient.names(below: "") }
        for _ in 0..<5 {
            #expect(await Turns.yield(until: { clock.sleeperCount == 1 }))
            clock.advance(by: .seconds(20))
        }
        await #expect(throws: away) { try await vain.value }
    }

    @Test func `the pause after failures grows to a minute and ends with a success`() {
        var generator = SeededGenerator(seed: 1)
        var pace = ShippingPace(interval: .seconds(10))
        #expect(pace.pause(using: &generator) == .seconds(10))
        for most in [1, 2, 4, 8, 16, 32, 60, 60] {
            pace.note(isDone: false)
            let pause = pace.pause(using: &generator)
            #expect(pause <= .seconds(most) && pause >= .milliseconds(most * 500))
        }
        pace.note(isDone: true)
        #expect(pace.pause(using: &generator) == .seconds(10))
    }

    @Test func `a manifest is read as written, and refused if a character differs`() {
        var manifest = BaseManifest(store: "s")
        manifest.parts = [BaseManifest.Part(bytes: 5, hash: "ab")]
        #expect(BaseManifest(manifest.text) == manifest)
        #expect(BaseManifest(manifest.text.replacing("5", with: "6")) == nil)
    }
}
