import Foundation
import GatewaySimulator
import Logging
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import belfry

/// The parts of the operator's commands: options, lists, tables and their texts.
@Suite struct OperatorKitTests {
    @Test(arguments: [
        "overview", "containers list", "keys list -c c", "changes list -c c", "audit",
        "changes tail --once -c c", "deliveries list", "check", "backup copy", "secrets status",
        "containers create -c iCloud.com.example.Art --topic com.example.Art",
        "sessions list -c c", "notifications couriers -c c", "explain --change 1 -c c",
    ])
    func `a mistyped file name is reported and no file is created`(command: String) async throws {
        let folder = try Folder.make()
        let file = folder.appending(path: "mistyped.sqlite").path
        var words = command.split(separator: " ").map(String.init)
        if words[0] == "backup" { words[1] = folder.appending(path: words[1]).path }
        let ending = try await BuiltBelfry.run(words + ["--database", file])
        #expect(ending.code != 0 && ending.complaint.contains(file), "\(ending.complaint)")
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(!left.contains { $0.hasPrefix("mistyped") || $0.hasPrefix("copy") }, "\(left)")
    }

    @Test func `containers of other shards are listed apart from those with known settings`() {
        let own: JSONValue = [
            "container": "c.A", "environment": "development", "topics": ["t"], "shard": "s1",
        ]
        let other: JSONValue = ["container": "c.B", "environment": "development", "shard": "s2"]
        func table(_ others: [JSONValue]) -> String {
            let answer: JSONValue = ["containers": [own], "elsewhere": .array(others)]
            return ContainersCommand.List.output(of: answer).text(asJSON: false)
        }
        let all = table([other])
        #expect(all.contains("c.A") && all.contains("c.B"))
        #expect(all.hasSuffix("for the rest, use --shard."))
        #expect(!table([]).contains("--shard"))
    }

    @Test func `a list says how to continue whatever its places are called`() {
        #expect(
            AdministrationOptions.more(["entries": [], "before": 5])
                == "There may be more: --before 5")
        #expect(AdministrationOptions.more(["after": "7"]) == "There may be more: --after 7")
        #expect(AdministrationOptions.more(["clients": []]) == nil)
        // Some lists cannot be continued from a place.
        let couriers: JSONValue = ["couriers": [["serial": 1], ["serial": 2]]]
        let cut = AdministrationOptions.cut(couriers, of: .listCouriers, at: 2)
        #expect(cut == "There may be more: --limit takes up to 1000")
        #expect(AdministrationOptions.cut(couriers, of: .listCouriers, at: 3) == nil)
    }

    @Test func `the help of serve lists every setting`() async throws {
        let help = try await BuiltBelfry.run(["serve", "--help"])
        #expect(help.code == 0)
        for key in ConfigurationKeys.all {
            #expect(help.output.contains("\n  \(key.flag)  ("), "\(key.name)")
            #expect(help.output.contains(key.variable), "\(key.name)")
        }
        #expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }

    @Test func `output that cannot be written makes the command fail`() async throws {
        let child = Child(["predicate", "check", "a == 1"], environment: [:])
        try child.run(
            input: .nullDevice,
            output: try FileHandle(forWritingTo: URL(filePath: "/dev/full")), error: Pipe())
        #expect(await child.ended() == 66)
    }

    @Test func `replaying continues after a failure and reports it at the end`() async throws {
        let home = try TemporaryStore()
        let store = try home.open()
        let key = ContainerKey(
            container: Sample.identifier("iCloud.com.example.Art"), environment: .development)
        try await store.save(ContainerSettings(key: key, topics: ["t"]), at: Sample.moment(0))
        try await store.save(
            StoredSource(
                container: key, name: Sample.source,
                definition: [
                    "name": "postgres", "preset": "belfry", "verification": ["scheme": "none"],
                ],
                savedAt: Sample.moment(0)))
        var numbers: [String] = []
        let good = #"{"operation":"create","recordType":"Art","recordName":"a","after":{}}"#
        for (index, body) in [#"{"nothing":1}"#, good, #"{"x":2}"#].enumerated() {
            let number = try await store.park(
                ParkedChange(
                    container: key, source: Sample.source, reason: "r", path: "",
                    body: Array(
                        #"{"reason":"r","path":"","raw":\#(body),"headers":{}}"#.utf8),
                    headers: [:],
                    receivedAt: Sample.moment(Int64(index))))
            numbers.append(String(number))
        }
        await store.close()
        let ending = try await BuiltBelfry.run(
            ["changes", "replay", "-c", key.container.rawValue, "--database", home.path, "--json"]
                + numbers + ["99"])
        #expect(ending.code == 1, "\(ending.output)\(ending.complaint)")
        guard case .array(let results)? = try ending.member("results") else {
            Issue.record("\(ending.output)")
            return
        }
        #expect(results.count == 4)
        let told = results.compactMap { $0.value(at: ["number"])?.text }
        #expect(told == numbers + ["99"])
        let failed = results.filter { $0.value(at: ["status"]) == "failed" }
        #expect(failed.count == 3, "\(ending.output)")
        // A change that does not exist is not counted among those that stay parked.
        let absent = try await BuiltBelfry.run(
            ["changes", "replay", "-c", key.container.rawValue, "--database", home.path, "99"])
        #expect(absent.code == 1, "\(absent.output)\(absent.complaint)")
        let remark = "1 of 1 could not be replayed; belfry changes parked lists what is parked"
        #expect(absent.output.hasSuffix("\n\(remark) still.\n"), "\(absent.output)")
    }

    @Test func `an overview lists databases that are not followed as they should be`() {
        func source(_ name: String, _ verdict: String) -> JSONValue {
            [
                "name": .string(name),
                "following": [
                    "state": "slotLost", "verdict": .string(verdict), "sentence": "Drop it.",
                ],
            ]
        }
        let remark = OverviewCommand.remark([
            "head": "1", "behind": "0",
            "containers": [
                [
                    "container": "c",
                    "webhooks": [
                        "sources": [source("a", "well"), source("b", "broken"), ["name": "plain"]]
                    ],
                ]
            ],
        ])
        #expect(
            remark == """
                The log ends at 1; 0 entries are not settled.
                The database of the source b of c: slotLost. Drop it.
                """)
    }

    @Test func `an overview lists the faults of the store`() {
        let remark = OverviewCommand.remark([
            "head": "1", "behind": "0", "quarantined": 1, "difference": 2, "unreadableRows": 1,
        ])
        #expect(
            remark == """
                The log ends at 1; 0 entries are not settled.
                1 change of the log was set aside, and fires nothing.
                The delivery accounts differ by 2 deliveries (belfry check).
                1 row of the store cannot be read (belfry check).
                """)
        #expect(
            OverviewCommand.remark([
                "head": "1", "behind": "0", "difference": 0, "unreadableRows": 0,
            ]) == "The log ends at 1; 0 entries are not settled.")
    }

    // MARK: The log

    @Test func `a JSON log line is one object on one line, whatever it contains`() throws {
        let line = LogLine(
            at: Timestamp(seconds: 0), level: "info", logger: "belfry",
            message: "a\n\u{202e}b\u{85}",
            metadata: [
                "level": "mine", "path": "\u{2028}ü✓", "list": ["x", ["y": "z"]],
                "count": .stringConvertible(7), "ms": .stringConvertible(0.5), "name": "7",
                "most": .stringConvertible(UInt64.max), "none": .stringConvertible(Double.nan),
            ])
        let text = line.json
        #expect(text.hasSuffix("\n") && text.dropLast().allSatisfy { !$0.isNewline })
        #expect(!text.contains("\u{202e}") && text.contains("ü✓"))
        guard case .object(let object) = try JSONValue(parsing: text) else {
            Issue.record("\(text)")
            return
        }
        #expect(object["message"] == "a\n\u{202e}b\u{85}")
        #expect(object["level"] == "info" && object["level_"] == "mine")
        #expect(
            object["path"] == "\u{2028}ü✓" && object["at"] == .string(Timestamp(seconds: 0).iso8601)
        )
        #expect(object["list"] == ["x", ["y": "z"]])
        // Numbers become JSON numbers. A text of digits, and a number that JSON cannot represent,
        // become strings.
        #expect(object["count"] == 7 && object["ms"] == .number(0.5) && object["name"] == "7")
        #expect(object["most"] == .string("\(UInt64.max)") && object["none"] == "nan")
    }

    @Test func `the whole log is JSON, and each request has a line without secrets`()
        async throws
    {
        let home = try TemporaryStore()
        let gateway = try await SampleGateway.start(in: try Folder.make())
        let relay = try await ServedBelfry.start(
            on: home.path, for: gateway,
            [
                "--log-format": "json", "--log-access": "all", "--log-level": "info",
            ])
        let secret = "topsecret"
        _ = try await relay.client.call("GET", "/nothing/\(secret)?token=\(secret)")
        _ = try await relay.client.call("GET", "/healthz?x=\(secret)")
        #expect(await relay.end() == 0)
        await gateway.simulated.stop()
        let lines = relay.logged.split(separator: "\n")
        var requests: [JSONValue] = []
        for line in lines where line.hasPrefix("{") {
            let json = try JSONValue(parsing: String(line))
            if json.value(at: ["message"]) == "request" { requests.append(json) }
        }
        #expect(!relay.logged.contains(secret))
        let paths = requests.compactMap { $0.value(at: ["path"]) }
        #expect(paths.contains("unknown") && paths.contains("/healthz"), "\(paths)")
        for request in requests {
            #expect(request.value(at: ["uuid"]) != nil)
            switch request.value(at: ["ms"]) {
            case .number, .integer: break
            default: Issue.record("\(request)")
            }
            let status: JSONValue = request.value(at: ["path"]) == "/healthz" ? 200 : 404
            #expect(request.value(at: ["status"]) == status)
            #expect(request.value(at: ["address"]) == "127.0.0.1")
        }
    }
}
