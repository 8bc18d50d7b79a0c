import ArgumentParser
import Foundation
import LogShipping
import RelayModel
import Testing

@testable import RelayServer
@testable import belfry

/// The verdicts that `belfry doctor` derives from an overview.
@Suite struct CheckupTests {
    private static let now = Timestamp(iso8601: "2026-11-23T12:00:00Z") ?? Timestamp(seconds: 0)

    /// An overview in which nothing is wrong.
    private static let sound = #"""
        {"now": "2026-11-23T12:00:01Z", "startedAt": "2026-11-20T12:00:00Z", "notReady": {},
         "disk": {"fileBytes": 1, "walBytes": 1, "freeBytes": 90000000000,
                  "reserveBytes": 67108864},
         "behind": "0", "retries": 0, "quarantined": 0, "rangeSubscriptions": 0,
         "halts": [], "refusing": {},
         "containers": [
           {"container": "iCloud.com.example.Art", "environment": "production",
            "canSend": "yes", "credential": {"kind": "key"}, "parked": 0, "deadLetters": 0,
            "gateway": {"last": {"at": "2026-11-23T11:59:00Z", "reason": "accepted"}},
            "webhooks": {"sources": [
              {"name": "shop", "savedAt": "2026-11-01T12:00:00Z",
               "lastAccepted": "2026-11-23T11:58:00Z"}]}}]}
        """#

    private static func checkup(
        _ replacements: [(String, String)] = []
    ) throws -> Checkup {
        var text = sound
        for (old, new) in replacements {
            try #require(text.contains(old), "\(old)")
            text = text.replacing(old, with: new)
        }
        return Checkup(overview: try JSONValue(parsing: text), now: now, isRunning: true)
    }

    @Test(arguments: [
        ("following", "2026-11-22T12:00:00Z"), ("connecting", "2026-11-23T11:52:00Z"),
    ])
    func `a followed database without changes is no finding`(state: String, since: String) throws {
        let diagnosis = try Self.checkup([
            (
                #""lastAccepted": "2026-11-23T11:58:00Z""#,
                #""following": {"state": "\#(state)", "verdict": "well", "sentence": "Following.", "#
                    + #""since": "\#(since)"}"#
            )
        ]).diagnosis
        #expect(diagnosis.state == .ok)
    }

    @Test func `a slot that a failover would lose is reported although all is well`() throws {
        let diagnosis = try Self.checkup([
            (
                #""lastAccepted": "2026-11-23T11:58:00Z""#,
                #""following": {"state": "following", "verdict": "well", "lacksFailover": true, "#
                    + #""sentence": "Following. Mark the slot.", "since": "2026-11-22T12:00:00Z"}"#
            )
        ]).diagnosis
        #expect(diagnosis.state == .ok)
        #expect(diagnosis.findings.contains { $0.text.contains("Mark the slot.") })
    }

    @Test func `for a relay without a container the first step is suggested`() throws {
        let overview: JSONValue = ["now": "2026-11-23T12:00:01Z", "containers": []]
        let diagnosis = Checkup(overview: overview, now: Self.now, isRunning: true).diagnosis
        #expect(
            diagnosis.verdict
                == "warn: there is no container yet, so nothing can be saved or posted")
        #expect(!diagnosis.isBad(strict: false))
        #expect(diagnosis.findings.last?.next == "belfry containers create --help")
    }

    @Test func `for a container without a source the command to create one is suggested`() throws {
        let diagnosis = try Self.checkup([
            (#""webhooks": {"sources": ["#, #""webhooks": {"sources": [], "others": ["#)
        ]).diagnosis
        #expect(diagnosis.state == .ok)
        #expect(
            diagnosis.findings.first { $0.check == "source" }?.next
                == "belfry sources set NAME --preset belfry \(Self.container)")
    }

    @Test func `if no user can sign in the command that allows it is suggested`() throws {
        let diagnosis = try Self.checkup([
            (#""canSend": "yes""#, #""canSend": "yes", "canSignIn": false"#)
        ]).diagnosis
        // This may be intended, for a container that only servers call.
        #expect(diagnosis.state == .ok)
        let check = "sign-in iCloud.com.example.Art/production"
        let found = diagnosis.findings.first { $0.check == check }
        #expect(found?.state == .unknown)
        #expect(
            found?.next == "belfry containers set \(Self.container) --key-set-file jwks.json")
    }

    @Test func `a sound relay needs nothing to be done`() throws {
        let diagnosis = try Self.checkup().diagnosis
        #expect(diagnosis.state == .ok)
        #expect(diagnosis.lines.first == "ok: nothing needs to be done")
        #expect(diagnosis.findings.count == 10)
        #expect(diagnosis.findings.allSatisfy { $0.next == nil })
        #expect(!diagnosis.isBad(strict: true))
        // A check that was not requested is listed, but does not change the verdict.
        #expect(diagnosis.findings.filter { $0.state == .unknown }.map(\.check) == ["backup"])
    }

    /// An overview with one fault, and the finding that it must cause.
    struct Wrong: Sendable, CustomTestStringConvertible {
        let old: String
        let new: String
        let state: Finding.State
        let words: String
        let next: String

        init(_ old: String, _ new: String, _ state: Finding.State, _ words: String, _ next: String)
        {
            self.old = old
            self.new = new
            self.state = state
            self.words = words
            self.next = next
        }

        var testDescription: String { words }
    }

    private static let container = "-c iCloud.com.example.Art -e production"

    @Test(arguments: [
        Wrong(
            #""notReady": {}"#, #""notReady": {"follower": "stands still"}"#, .fail,
            "follower: stands still", "belfry overview"),
        Wrong(
            "2026-11-23T12:00:01Z", "2026-11-23T12:00:09Z", .warn, "differs by 9.0 s",
            "timedatectl timesync-status"),
        Wrong(
            "2026-11-23T12:00:01Z", "2026-11-23T11:50:00Z", .fail, "differs by -600.0 s",
            "timedatectl timesync-status"),
        Wrong("90000000000", "600000000", .warn, "600 MB free, 67 MB are reserved", "df -h"),
        Wrong("90000000000", "60000000", .fail, "60 MB free, 67 MB are reserved", "df -h"),
        Wrong(
            #""freeBytes": 90000000000"#, #""freeBytes": 90000000000, "freeFiles": 999"#, .warn,
            "the disk has inodes for only 999 more files, although it has free space (90000 MB "
                + "free",
            "df -i"),
        Wrong(
            #""behind": "0""#, #""behind": "10001""#, .warn, "10001 entries are not settled",
            "belfry overview"),
        Wrong(
            #""quarantined": 0"#, #""quarantined": 2"#, .warn, "2 changes were set aside",
            "belfry overview"),
        Wrong(
            #""quarantined": 0"#,
            #"""
            "quarantined": 2, "setAside": {"container": "iCloud.com.example.Art",
                "environment": "production", "position": "17", "reason": "it is too dear"}
            """#,
            .warn,
            "2 changes were set aside and fire nothing; the newest is at position 17 of "
                + "iCloud.com.example.Art/production: it is too dear",
            "belfry changes show 17 \(container)"),
        Wrong(
            #""refusing": {}"#, #""refusing": {}, "difference": 2"#, .fail,
            "the delivery accounts differ by 2 deliveries", "belfry check"),
        Wrong(
            #""refusing": {}"#, #""refusing": {}, "unreadableRows": 1"#, .warn,
            "1 row of the store cannot be read", "belfry check"),
        Wrong(
            #""refusing": {}"#, #""refusing": {"retries": "9 wait"}"#, .fail,
            "changes are refused (retries: 9 wait)", "belfry overview"),
        Wrong(
            #""refusing": {}"#,
            #""refusing": {}, "nodes": 2, "disagreements": ["b has other settings (x is 1)"]"#,
            .warn, "b has other settings (x is 1)", "belfry nodes"),
        Wrong(
            #""refusing": {}"#,
            #"""
            "refusing": {}, "shards": [{"shard": "a", "state": "owned"},
                {"shard": "b", "state": "unowned", "reason": "no relay owns it"}]
            """#,
            .fail, "the shard b cannot be reached: no relay owns it", "belfry shards"),
        Wrong(
            #""refusing": {}"#, #""refusing": {}, "tls": {"expiresAt": "2026-12-01T12:00:00Z"}"#,
            .warn, "the relay's own certificate is valid for another 8 days",
            "renew tls.certificateFile; the relay loads the new file by itself"),
        Wrong(
            #""refusing": {}"#, #""refusing": {}, "tls": {"expiresAt": "2026-11-23T12:00:00Z"}"#,
            .fail, "the relay's own certificate expired at 2026-11-23T12:00:00.000Z",
            "renew tls.certificateFile; the relay loads the new file by itself"),
        Wrong(
            #""canSend": "yes""#, #""canSend": "no""#, .fail, "could not send",
            "belfry containers show \(container)"),
        Wrong(
            #""reason": "accepted""#, #""reason": "InternalServerError", "status": 500"#, .warn,
            "failed to accept a push of iCloud.com.example.Art/production at "
                + "2026-11-23T11:59:00Z, which will be tried again: InternalServerError",
            "belfry deliveries retries \(container)"),
        Wrong(
            #"{"kind": "key"}"#,
            #"{"kind": "certificate", "expiresAt": "2026-12-01T12:00:00Z"}"#, .warn,
            "is valid for another 8 days",
            "belfry containers set \(container) --certificate-file FILE.p12"),
        Wrong(
            #"{"kind": "key"}"#,
            #"{"kind": "certificate", "expiresAt": "2026-11-23T11:00:00Z"}"#, .fail, "expired at",
            "belfry containers set \(container) --certificate-file FILE.p12"),
        Wrong(
            #""deadLetters": 0"#, #""deadLetters": 3"#, .warn, "3 dead letters",
            "belfry deliveries dead-letters \(container)"),
        Wrong(
            #""parked": 0"#, #""parked": 1"#, .warn, "production has 1 parked change",
            "belfry changes parked \(container)"),
        Wrong(
            #""parked": 0"#, #""parked": 4"#, .warn, "production has 4 parked changes",
            "belfry changes parked \(container)"),
        Wrong(
            "2026-11-23T11:58:00Z", "2026-11-21T11:58:00Z", .warn,
            "shop has posted nothing for 2 days",
            "belfry sources show shop \(container)"),
        Wrong(
            #""lastAccepted": "2026-11-23T11:58:00Z""#,
            #""lastRefused": "2026-11-23T11:58:00Z", "lastReason": "no signature""#, .fail,
            "no signature", "belfry sources refused \(container)"),
        Wrong(
            #""lastAccepted": "2026-11-23T11:58:00Z""#,
            #""lastAccepted": "2026-11-23T11:58:00Z", "lastRefused": "2026-11-23T11:59:00Z""#,
            .warn, "was refused at", "belfry sources refused \(container)"),
        Wrong(
            #""lastAccepted": "2026-11-23T11:58:00Z""#,
            #"""
            "lastAccepted": "2026-11-23T11:58:00Z", "accepted": 30, "refused": 10,
                "lastRefused": "2026-11-23T11:57:00Z", "lastReason": "no signature"
            """#,
            .warn,
            "10 of 40 webhooks of shop were refused since the relay was started, the last at "
                + "2026-11-23T11:57:00.000Z: no signature", "belfry sources refused \(container)"),
        Wrong(
            #""lastAccepted": "2026-11-23T11:58:00Z""#,
            #""lastAccepted": "2026-11-23T11:58:00Z", "older": 10, "olderPercent": 40"#, .warn,
            "40 % of the latest changes of shop are older",
            "belfry changes list --state stale --source shop \(container)"),
        Wrong(
            #""lastAccepted": "2026-11-23T11:58:00Z""#,
            #""following": {"state": "slotLost", "verdict": "broken", "sentence": "Drop it."}"#,
            .fail, "shop: Drop it.", "belfry sources show shop \(container)"),
        Wrong(
            #""lastAccepted": "2026-11-23T11:58:00Z""#,
            #"""
            "following": {"state": "connecting", "verdict": "well", "sentence": "Connecting.",
                "since": "2026-11-23T11:49:00Z"}
            """#,
            .warn, "shop: connecting since 2026-11-23T11:49:00Z",
            "belfry sources show shop \(container)"),
        Wrong(
            #""lastAccepted": "2026-11-23T11:58:00Z""#,
            #""following": {"state": "unreachable", "verdict": "waiting", "sentence": "Wait."}"#,
            .warn, "shop: Wait.", "belfry sources show shop \(container)"),
    ])
    func `each fault becomes the verdict with the next command to run`(wrong: Wrong) throws {
        let diagnosis = try Self.checkup([(wrong.old, wrong.new)]).diagnosis
        #expect(diagnosis.state == wrong.state)
        #expect(diagnosis.verdict.hasPrefix("\(wrong.state): "))
        #expect(diagnosis.verdict.contains(wrong.words), "\(diagnosis.verdict)")
        let due = diagnosis.findings.filter { $0.next != nil }
        #expect(due.map(\.next) == [wrong.next])
        #expect(diagnosis.isBad(strict: false) == (wrong.state == .fail))
        #expect(diagnosis.isBad(strict: true))
        // The suggested next step must be a command that exists.
        if wrong.next.hasPrefix("belfry ") {
            let words = wrong.next.split(separator: " ").dropFirst().map(String.init)
            #expect(throws: Never.self) { _ = try BelfryCommand.parseAsRoot(words) }
        }
    }

    @Test(arguments: [
        #""accepted": 30, "refused": 9, "lastRefused": "2026-11-23T11:57:00Z""#,
        #""accepted": 300, "refused": 10, "lastRefused": "2026-11-23T11:57:00Z""#,
        #""accepted": 30, "refused": 10, "lastRefused": "2026-11-23T10:57:00Z""#,
    ])
    func `few or past refusals by the gateway are no finding`(members: String) throws {
        let diagnosis = try Self.checkup([
            (
                #""lastAccepted": "2026-11-23T11:58:00Z""#,
                #""lastAccepted": "2026-11-23T11:58:00Z", "# + members
            )
        ]).diagnosis
        #expect(diagnosis.state == .ok)
    }

    @Test func `the verdict names the first of several faults and their number`() throws {
        let diagnosis = try Self.checkup([
            (
                #""lastAccepted": "2026-11-23T11:58:00Z""#,
                #""following": {"state": "slotLost", "verdict": "broken", "sentence": "Drop it."}"#
            ), (#""parked": 0"#, #""parked": 1"#),
        ]).diagnosis
        #expect(diagnosis.verdict == "fail: shop: Drop it, and 1 more")
    }

    @Test func `a halted container is reported with its time and reason`() throws {
        let halt = """
            {"container": "iCloud.com.example.Art", "environment": "production",
             "since": "2026-11-23T11:00:00Z", "reason": "403 InvalidProviderToken"}
            """
        let diagnosis = try Self.checkup([(#""halts": []"#, #""halts": [\#(halt)]"#)]).diagnosis
        #expect(
            diagnosis.verdict == "fail: pushes of iCloud.com.example.Art/production wait since "
                + "2026-11-23T11:00:00Z: 403 InvalidProviderToken")
    }

    @Test func `a certificate with much time left is reported and a missing one is no finding`()
        throws
    {
        let end = #""refusing": {}, "tls": {"expiresAt": "2027-11-23T12:00:00Z"}"#
        let valid = try Self.checkup([(#""refusing": {}"#, end)]).diagnosis
        #expect(valid.state == .ok)
        #expect(
            valid.findings.first { $0.check == "tls" }?.text.hasSuffix("another 365 days") == true)
        let none = try Self.checkup([(#""refusing": {}"#, #""refusing": {}, "tls": null"#)])
        #expect(!none.diagnosis.findings.contains { $0.check == "tls" })
    }

    @Test func `the suggested check names the store even on another machine`()
        throws
    {
        var checkup = try Self.checkup([
            (#""refusing": {}"#, #""refusing": {}, "difference": 3"#)
        ])
        checkup.store = " --config '/etc/a b.json'"
        #expect(checkup.diagnosis.state == .fail)
        var next = checkup.diagnosis.findings.compactMap(\.next)
        #expect(next == ["belfry check --config '/etc/a b.json'"])
        (checkup.store, checkup.isElsewhere) = ("", true)
        next = checkup.diagnosis.findings.compactMap(\.next)
        #expect(next == ["on the relay's machine: belfry check"])
        checkup = try Self.checkup()
        checkup.isElsewhere = true
        checkup.backup = .missing(path: "/b")
        next = checkup.diagnosis.findings.compactMap(\.next)
        #expect(
            next == [
                "on the relay's machine: belfry backup FILE --database STORE; then copy FILE to "
                    + "/b/belfry.backup"
            ])
    }

    @Test func `silence before the start of the relay is not judged`() throws {
        let diagnosis = try Self.checkup([
            (#""startedAt": "2026-11-20T12:00:00Z""#, #""startedAt": "2026-11-23T11:00:00Z""#),
            (#""lastAccepted": "2026-11-23T11:58:00Z""#, #""accepted": 0"#),
        ]).diagnosis
        let source = diagnosis.findings.first { $0.check == "source shop" }
        #expect(source?.state == .unknown)
        #expect(diagnosis.state == .ok)
    }

    @Test func `old and missing backups are reported`() throws {
        var checkup = try Self.checkup()
        checkup.database = "/var/lib/a b.sqlite"
        checkup.backup = .made(Self.now.advanced(by: .seconds(-3600)), path: "/b/x")
        #expect(checkup.diagnosis.state == .ok)
        checkup.backup = .made(Self.now.advanced(by: .seconds(-90 * 3600)), path: "/b/x")
        #expect(checkup.diagnosis.verdict == "warn: the newest backup, /b/x, is 3 days old")
        let next = checkup.diagnosis.findings.compactMap(\.next)
        #expect(next == ["belfry backup /b/x.new --database '/var/lib/a b.sqlite'"])
        checkup.backup = .missing(path: "/b")
        #expect(checkup.diagnosis.state == .fail)
    }

    @Test func `the remains of an interrupted backup do not count as a backup`() throws {
        let folder = try Folder.make()
        func write(_ name: String, _ text: String, at seconds: Int) throws -> String {
            let file = folder.appending(path: name)
            try Data(text.utf8).write(to: file)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: Double(seconds))],
                ofItemAtPath: file.path)
            return file.path
        }
        let empty = try write("full-disk.sqlite", "", at: 3000)
        _ = try write("cut-off.sqlite.partial", "x", at: 4000)
        #expect(
            try FoundBackups.newest(at: folder.path) == .missing(path: folder.path))
        #expect(try FoundBackups.newest(at: empty) == .missing(path: empty))
        let whole = try write("whole.sqlite", "x", at: 2000)
        #expect(
            try FoundBackups.newest(at: folder.path)
                == .made(Timestamp(seconds: 2000), path: whole))
    }

    @Test func `continuous backups are judged by what can be restored from them`() throws {
        var checkup = try Self.checkup()
        checkup.config = " --config b.json"
        func finding(_ reach: BackupReach) -> Finding? {
            checkup.backup = .shipped(reach, place: "s3://b/p")
            return checkup.diagnosis.findings.first { $0.check == "backup" }
        }
        let anHourAgo = Self.now.advanced(by: .seconds(-7200))
        let sound = finding(.restorable(until: anHourAgo, flaw: nil))
        #expect(sound?.state == .ok)
        #expect(sound?.text == "s3://b/p can be restored up to 2 h ago")
        let old = finding(
            .restorable(until: Self.now.advanced(by: .seconds(-90 * 3600)), flaw: nil))
        #expect(old?.state == .warn && old?.next == "belfry overview")
        let torn = finding(.restorable(until: anHourAgo, flaw: "segment 3 is missing"))
        #expect(torn?.state == .warn)
        #expect(torn?.text.hasSuffix("2 h ago; segment 3 is missing") == true)
        #expect(torn?.next == "belfry backups list s3://b/p --config b.json")
        let ahead = finding(.restorable(until: .latest, flaw: nil))
        #expect(ahead?.state == .warn && ahead?.text.contains("later than now") == true)
        let nothing = finding(.none(reason: "there is no whole copy"))
        #expect(nothing?.state == .fail)
        #expect(nothing?.text.hasSuffix("can be restored: there is no whole copy") == true)
        checkup.backup = .unread(place: "s3://b/p", reason: "s3://b/p: it does not answer")
        #expect(checkup.diagnosis.state == .fail)
    }

    @Test func `a destination of continuous backups is not treated as a folder of copies`()
        async throws
    {
        let folder = try Folder.make()
        try Data("belfry-backup 1\nstore x\n".utf8).write(to: folder.appending(path: "store"))
        for text in [folder.path, "file://\(folder.path)"] {
            let found = try await FoundBackups.look(at: text, config: nil)
            #expect(
                found
                    == .shipped(
                        .none(reason: "there is no whole copy"), place: "file://\(folder.path)"))
        }
        await #expect(throws: CommandFailure.self) {
            try await FoundBackups.look(at: "file:///a/../b", config: nil)
        }
    }

    @Test func `a backup dated in the future does not count as recent`() throws {
        var checkup = try Self.checkup([])
        for moment in [Self.now.advanced(by: .seconds(86_400)), .latest] {
            checkup.backup = .made(moment, path: "/b/x")
            let finding = checkup.diagnosis.findings.first { $0.check == "backup" }
            #expect(finding?.state == .warn)
            #expect(finding?.text.contains("later than now") == true)
        }
        checkup.backup = .made(Self.now.advanced(by: .seconds(60)), path: "/b/x")
        let sound = checkup.diagnosis.findings.first { $0.check == "backup" }
        #expect(sound?.state == .ok)
        #expect(FoundBackups.moment(Date(timeIntervalSince1970: 0x1p63)) == .latest)
        #expect(FoundBackups.moment(Date(timeIntervalSince1970: -0x1p64)) == .earliest)
        #expect(
            FoundBackups.moment(Date(timeIntervalSince1970: 1_000_000.75))
                == Timestamp(seconds: 1_000_000))
    }

    @Test func `continuous backups that reach into the future are not known to be recent`() throws {
        func finding(_ until: String) throws -> Finding? {
            let checkup = try Self.checkup([
                (
                    #""halts": []"#,
                    #""halts": [], "backup": {"place": "s3://b", "intervalSeconds": 10, "#
                        + #""shippedUntil": "\#(until)", "failure": {"reason": "it is full"}}"#
                )
            ])
            return checkup.diagnosis.findings.first { $0.check == "backup" }
        }
        let ahead = try finding("2026-11-24T12:00:00Z")
        #expect(ahead?.state == .warn)
        #expect(ahead?.text.contains("later than now") == true)
        #expect(ahead?.text.hasSuffix("; it is full") == true)
        let sound = try finding("2026-11-23T12:00:30Z")
        #expect(sound?.state == .ok)
    }

    @Test func `for a store on PostgreSQL no copy of a file is suggested`() throws {
        var checkup = try Self.checkup([
            (#""halts": []"#, #""nodes": 2, "disagreements": [], "halts": []"#)
        ])
        for backup in [
            Checkup.Backup.missing(path: "/b"),
            .made(Self.now.advanced(by: .seconds(-90 * 3600)), path: "/b/x"),
        ] {
            checkup.backup = backup
            let next = checkup.diagnosis.findings.first { $0.check == "backup" }?.next
            #expect(next?.hasPrefix("use pg_basebackup ") == true, "\(next ?? "nothing")")
        }
    }

    @Test(arguments: [
        ("plain-1.sqlite", "plain-1.sqlite"), ("", "''"), ("a b", "'a b'"),
        ("it's", #"'it'\''s'"#), ("$(id)", "'$(id)'"),
    ])
    func `paths in suggested commands are quoted as one shell word`(text: String, word: String) {
        #expect(Checkup.quoted(text) == word)
    }
}
