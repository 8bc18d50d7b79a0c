import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// `belfry doctor`, against a running relay and against its file.
@Suite(.timeLimit(.minutes(30))) struct DoctorCommandTests {
    /// Runs `belfry doctor` against the relay's administrative listener.
    private static func examine(
        _ relay: ServedBelfry, _ arguments: String..., token: String = RelayClient.adminToken
    ) async throws -> BuiltBelfry.Ending {
        try await BuiltBelfry.run(
            ["doctor", "--url", relay.client.adminURL] + arguments,
            environment: ["BELFRY_ADMIN_TOKEN": token])
    }

    /// Polls the overview until the gateway's answers have decided whether the container can send.
    private static func waitForAnswer(_ relay: ServedBelfry) async throws -> JSONValue? {
        for _ in 0..<10_000 {
            let view = try await relay.client.administer("GET", "overview").expect(200)
            let state = view["containers", "0", "canSend"]
            if state != "untried" { return state }
        }
        return nil
    }

    /// Checks that the suggested next step names the database file, because the configuration names
    /// it.
    private static func checkAdvice(
        _ relay: ServedBelfry, of file: String, without backups: String
    ) async throws {
        let port = try #require(URL(string: relay.client.adminURL)?.port)
        let ending = try await BuiltBelfry.run(
            ["doctor", "--backups", backups],
            environment: [
                "BELFRY_ADMIN_TOKEN": RelayClient.adminToken, "BELFRY_ADMIN_PORT": String(port),
                "BELFRY_STORAGE_PATH": file,
            ])
        #expect(
            ending.output.contains(
                "next: belfry backup \(backups)/belfry.backup --database \(file)\n"),
            "\(ending.output)\(ending.complaint)")
    }

    @Test func `a sound relay passes, and a source with refused requests is reported`() async throws
    {
        let folder = try Folder.make()
        let file = folder.appending(path: "relay.sqlite").path
        let gateway = try await SampleGateway.start(in: folder)
        let relay = try await ServedBelfry.start(on: file, for: gateway)
        let container = try await SampleContainer.create(on: relay.client, for: gateway)

        // Before the first push it is unknown whether sending works, even if a credential is
        // configured.
        let fresh = try await Self.examine(relay)
        #expect(fresh.code == 0, "\(fresh.complaint)")
        #expect(fresh.output.contains("nothing was sent since the relay was started"))

        for device in SampleDevice.usual { try await container.register(device) }
        try await container.save(.query("q", #"artist = "artist-1""#))
        try await container.post(.change("create", "a1"))
        #expect(try await Self.waitForAnswer(relay) == "yes")
        let reading = try await relay.client.administer(
            "POST", "tokens", ["label": "watch", "access": "read"]
        ).expect(201)
        guard case .string(let secret)? = reading["secret"] else {
            Issue.record("a token has a secret: \(reading.text)")
            return
        }
        let well = try await Self.examine(relay, token: secret)
        #expect(well.code == 0, "\(well.complaint)")
        #expect(well.output.contains("last answer: accepted at 20"), "\(well.output)")
        #expect(well.output.contains("agrees with this machine's within 5 s"))

        // A missing backup, and a source whose requests fail verification.
        let old = folder.appending(path: "backups")
        try FileManager.default.createDirectory(at: old, withIntermediateDirectories: false)
        let missing = try await Self.examine(relay, "--backups", old.path)
        #expect(missing.code == 1)
        #expect(missing.output.hasPrefix("fail: there is no backup at \(old.path)"))
        try await Self.checkAdvice(relay, of: file, without: old.path)
        try await relay.client.administer(
            "PUT", "\(container.path)/sources/shop", ["preset": "debezium"]
        ).expect(201)
        try await container.post(["op": "c"], to: "shop", expecting: 401)
        let refused = try await Self.examine(relay, "--json")
        #expect(refused.code == 1)
        let json = try JSONValue(parsing: refused.output)
        #expect(json.value(at: ["state"]) == "fail")
        guard case .array(let checks)? = json.value(at: ["checks"]) else {
            Issue.record("\(refused.output)")
            return
        }
        let shop = checks.first { $0.value(at: ["check"]) == "source shop" }
        #expect(shop?.value(at: ["state"]) == "fail")
        let next = "belfry sources refused -c iCloud.com.example.Art -e development"
        #expect(
            shop?.value(at: ["next"]) == .string("\(next) --url \(relay.client.adminURL)"))

        #expect(await relay.end() == 0)
        let over = try await BuiltBelfry.run(
            ["doctor", "--database", file],
            environment: ["BELFRY_STORAGE_DISK_RESERVE_MEGABYTES": "0"])
        #expect(over.code == 0, "\(over.complaint)")
        #expect(
            over.output.contains("no relay is running; the store's file was read directly"),
            "\(over.output)")
        await gateway.simulated.stop()
    }

    @Test func `a credential that the gateway refuses does not count as able to send`()
        async throws
    {
        let folder = try Folder.make()
        let gateway = try await SampleGateway.start(
            .all(ScriptedAnswer(.refuse(.init(status: 403, reason: "InvalidProviderToken")))),
            in: folder)
        let relay = try await ServedBelfry.start(
            on: folder.appending(path: "relay.sqlite").path, for: gateway)
        let container = try await SampleContainer.create(on: relay.client, for: gateway)
        for device in SampleDevice.usual { try await container.register(device) }
        try await container.save(.query("q", #"artist = "artist-1""#))
        try await container.post(.change("create", "a1"))
        #expect(try await Self.waitForAnswer(relay) == "no")
        let ending = try await Self.examine(relay)
        #expect(ending.code == 1)
        #expect(ending.output.hasPrefix("fail: "), "\(ending.output)")
        #expect(ending.output.contains("InvalidProviderToken"), "\(ending.output)")
        let overview = try await BuiltBelfry.run(
            ["overview", "--url", relay.client.adminURL],
            environment: ["BELFRY_ADMIN_TOKEN": RelayClient.adminToken])
        #expect(overview.output.contains("InvalidProviderToken"), "\(overview.output)")
        #expect(await relay.end() == 0)
        await gateway.simulated.stop()
    }

    @Test func `a relay that does not answer gets no verdict`() async throws {
        let ending = try await BuiltBelfry.run(
            ["doctor", "--url", "http://127.0.0.1:1"],
            environment: ["BELFRY_ADMIN_TOKEN": RelayClient.adminToken])
        #expect(ending.code == 69)
        let wrong = try await BuiltBelfry.run(["doctor", "--silent-hours", "-1"])
        #expect(wrong.code == 64)
    }
}
