import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// Continuous backups of relay processes that are killed, or whose backup place is missing.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ShippedBackupTests {
    /// A relay that ships its backups to a folder.
    private struct Rig {
        let gateway: SampleGateway
        let folder: URL
        let settings: [String: String]
        var relay: ServedBelfry
        var container: SampleContainer

        var database: String { folder.appending(path: "relay.sqlite").path }
        var url: String { "file://\(folder.appending(path: "backups").path)" }

        static func furnish(makingPlace: Bool = true) async throws -> Rig {
            let folder = try Folder.make()
            let backups = folder.appending(path: "backups")
            if makingPlace {
                try FileManager.default.createDirectory(
                    at: backups, withIntermediateDirectories: false)
            }
            let gateway = try await SampleGateway.start(in: folder)
            let settings = [
                "--backup-url": "file://\(backups.path)", "--backup-interval-seconds": "1",
            ]
            let relay = try await ServedBelfry.start(
                on: folder.appending(path: "relay.sqlite").path, for: gateway, settings)
            let container = try await SampleContainer.create(on: relay.client, for: gateway)
            return Rig(
                gateway: gateway, folder: folder, settings: settings, relay: relay,
                container: container)
        }

        mutating func restart() async throws {
            relay = try await ServedBelfry.start(on: database, for: gateway, settings)
            container.client = relay.client
        }

        func post(_ names: Range<Int>) async throws {
            for name in names { try await container.post(.change("create", "a\(name)")) }
        }

        /// Runs a command and returns the log's head that its JSON reports.
        func head(_ arguments: String...) async throws -> JSONValue? {
            let ending = try await BuiltBelfry.run(arguments + ["--json"])
            #expect(ending.code == 0, "\(ending.output)\(ending.complaint)")
            return try ending.member("head")
        }
    }

    @Test func `a copy with a missing part is not listed as complete`() async throws {
        let rig = try await Rig.furnish()
        try await rig.relay.line(containing: "shipped a copy of the file")
        #expect(await rig.relay.end() == 0)
        let whole = try await BuiltBelfry.run(["backups", "list", rig.url])
        #expect(whole.code == 0, "\(whole.output)\(whole.complaint)")
        let place = rig.folder.appending(path: "backups")
        let names = FileManager.default.enumerator(atPath: place.path)?.allObjects as? [String]
        let part = try #require(names?.filter { $0.contains("/part-") }.max())
        try FileManager.default.removeItem(at: place.appending(path: part))
        let listed = try await BuiltBelfry.run(["backups", "list", rig.url])
        #expect(listed.code == 1)
        #expect(listed.output.contains("not whole  CANNOT BE RESTORED: "), "\(listed.output)")
        #expect(listed.output.contains("\(part) is missing"), "\(listed.output)")
        await rig.gateway.simulated.stop()
    }

    @Test func `a relay killed while shipping loses nothing that it had acknowledged`()
        async throws
    {
        var rig = try await Rig.furnish()
        try await rig.relay.line(containing: "shipped a copy of the file")
        for round in 0..<4 {
            // The previous round's segments may be on their way when the relay is killed, and
            // nothing of the last round is shipped yet.
            try await rig.post(round * 40..<round * 40 + 40)
            await rig.relay.kill()
            try await rig.restart()
        }
        let moment = Timestamp(
            seconds: Int64(Date.now.timeIntervalSince1970.rounded(.up)) + 1)
        #expect(await rig.relay.end() == 0)
        let verified = try await BuiltBelfry.run(["backups", "verify", rig.url, "--json"])
        #expect(verified.code == 0, "\(verified.output)\(verified.complaint)")
        #expect(try verified.member("problems") == [])
        let listed = try await BuiltBelfry.run(["backups", "list", rig.url])
        // There is one chain: no kill made a second copy of the whole file necessary.
        #expect(listed.code == 0 && listed.output.contains("copy 1  from "), "\(listed.output)")
        #expect(listed.output.split(separator: "\n").count == 1)
        let copy = rig.folder.appending(path: "restored.sqlite").path
        let head = try await rig.head("check", "--database", rig.database)
        #expect(try await rig.head("restore", "--from", rig.url, "--database", copy) == head)
        #expect(try await rig.head("check", "--database", copy) == head)
        let again = try await rig.head(
            "restore", "--from", rig.url, "--database", copy, "--replace", "--at", moment.iso8601)
        #expect(again == head)
        // The result is a working store: a relay serves it, and it has every change.
        let served = try await ServedBelfry.start(on: copy, for: rig.gateway)
        let last = try await served.client.administer(
            "GET", "\(rig.container.path)/changes?limit=200"
        ).expect(200)
        #expect(last.text.contains("\"a0\"") && last.text.contains("\"a159\""))
        #expect(await served.end() == 0)
        await rig.gateway.simulated.stop()
    }

    @Test func `a missing place delays nothing and is reported and shipped to later`()
        async throws
    {
        let rig = try await Rig.furnish(makingPlace: false)
        try await rig.relay.line(containing: "a backup cannot be shipped yet")
        try await rig.post(0..<20)
        let client = rig.relay.client
        #expect(try await client.call("GET", "/readyz").status == 200)
        let overview = try await client.administer("GET", "overview").expect(200)
        let reason = overview["backup", "failure", "reason"].map { "\($0)" } ?? ""
        #expect(reason.contains("there is no such folder"), "\(overview.text)")
        let attention = try await client.administer("GET", "attention").expect(200)
        #expect(attention.text.contains("nothing is shipped to"), "\(attention.text)")
        var watcher = client
        watcher.url = client.adminURL
        let metrics = try await watcher.call("GET", "/metrics").expect(200).text
        #expect(metrics.contains(/belfry_backup_failures_total [1-9]/), "\(metrics)")
        #expect(!metrics.contains("\nbelfry_backup_age_seconds"), "\(metrics)")
        try FileManager.default.createDirectory(
            at: rig.folder.appending(path: "backups"), withIntermediateDirectories: false)
        try await rig.relay.line(containing: "backups are shipped again")
        try await rig.relay.line(containing: "shipped a copy of the file")
        let fine = try await client.administer("GET", "overview").expect(200)
        #expect(fine["backup", "failure"] == nil && fine["backup", "shippedUntil"] != nil)
        #expect(await rig.relay.end() == 0)
        let copy = rig.folder.appending(path: "restored.sqlite").path
        let head = try await rig.head("check", "--database", rig.database)
        #expect(try await rig.head("restore", "--from", rig.url, "--database", copy) == head)
        await rig.gateway.simulated.stop()
    }

    @Test func `damaged parts and wrong names are reported`() async throws {
        let rig = try await Rig.furnish()
        try await rig.relay.line(containing: "shipped a copy of the file")
        #expect(await rig.relay.end() == 0)
        let backups = rig.folder.appending(path: "backups")
        let names = try FileManager.default.subpathsOfDirectory(atPath: backups.path)
        let part = try #require(names.first { $0.hasSuffix("part-000001") })
        let file = backups.appending(path: part)
        var bytes = try Data(contentsOf: file)
        bytes[4000] ^= 1
        try bytes.write(to: file)
        let copy = rig.folder.appending(path: "restored.sqlite").path
        for command in [
            ["backups", "verify", rig.url], ["restore", "--from", rig.url, "--database", copy],
        ] {
            let ending = try await BuiltBelfry.run(command)
            #expect(ending.code != 0)
            #expect((ending.output + ending.complaint).contains("\(part) is damaged"), "\(command)")
        }
        #expect(!FileManager.default.fileExists(atPath: copy))
        // What no copy could put right is reported before a copy is fetched.
        try Data([1]).write(to: URL(filePath: rig.database + "-replaced"))
        let wrong = [
            (
                [
                    "restore", "--from", "file:///nowhere/at/all", "--database", rig.database,
                    "--replace",
                ], "it exists from an earlier restore"
            ),
            (["backups", "list", "file:///a/../b"], "must be file:///FOLDER"),
            (["backups", "list", "file:///nowhere/at/all"], "there is no such folder"),
            (["restore", "--from", rig.url, "x"], "name a copy, or continuous backups"),
            (["restore", "--from", rig.url, "--at", "yesterday"], "must be a date and time"),
            (["restore", "--from", rig.url, "--database", rig.database], "exists already"),
            (
                ["restore", "--from", rig.url, "--database", copy, "--at", "2020-01-01T00:00:00Z"],
                "goes back only to"
            ),
        ]
        for (command, words) in wrong {
            let ending = try await BuiltBelfry.run(command)
            #expect(ending.code != 0 && ending.complaint.contains(words), "\(ending.complaint)")
        }
        let empty = rig.folder.appending(path: "empty")
        try FileManager.default.createDirectory(at: empty, withIntermediateDirectories: false)
        let none = try await BuiltBelfry.run(["backups", "list", "file://\(empty.path)"])
        #expect(none.code == 1 && none.output.contains("There is no whole copy at "))
        await rig.gateway.simulated.stop()
    }
}
