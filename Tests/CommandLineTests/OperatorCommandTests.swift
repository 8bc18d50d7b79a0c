import Crypto
import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// The commands of an operator, on a file and against a running relay.
@Suite(.timeLimit(.minutes(30))) struct OperatorCommandTests {
    /// Where the commands work: directly on the file, or through the running relay.
    enum Place: String, CaseIterable, Sendable {
        case file, relay
    }

    /// Runs commands at one place.
    private struct Shell {
        let place: [String]
        let environment: [String: String]

        /// Runs a command that must succeed, and returns the JSON that it prints.
        @discardableResult
        func json(
            _ arguments: String..., location: SourceLocation = #_sourceLocation
        ) async throws -> JSONValue {
            let ending = try await BuiltBelfry.run(
                arguments + ["--json"] + place, environment: environment)
            #expect(ending.code == 0, "\(ending.complaint)", sourceLocation: location)
            return (try? JSONValue(parsing: ending.output)) ?? .null
        }

        /// Runs a command without `--json`, as people do.
        func run(_ arguments: String...) async throws -> BuiltBelfry.Ending {
            try await BuiltBelfry.run(arguments + place, environment: environment)
        }
    }

    private static let container = ["-c", "iCloud.com.example.Art"]

    /// Runs `body` with commands that work at `place`.
    private func with(
        _ place: Place, _ body: (Shell, URL, SampleGateway) async throws -> Void
    ) async throws {
        let folder = try Folder.make()
        let file = folder.appending(path: "relay.sqlite").path
        let gateway = try await SampleGateway.start(in: folder)
        switch place {
        case .file:
            try await BuiltBelfry.makeStore(at: file)
            try await body(
                Shell(place: ["--database", file], environment: Self.noReserve), folder, gateway)
        case .relay:
            let relay = try await ServedBelfry.start(on: file, for: gateway)
            let shell = Shell(
                place: ["--url", relay.client.adminURL],
                environment: ["BELFRY_ADMIN_TOKEN": RelayClient.adminToken])
            do {
                try await body(shell, folder, gateway)
            } catch {
                await relay.kill()
                throw error
            }
            let code = await relay.end()
            #expect(code == 0, "\(relay.logged)")
        }
        await gateway.simulated.stop()
    }

    private static let noReserve = ["BELFRY_STORAGE_DISK_RESERVE_MEGABYTES": "0"]

    @Test(arguments: Place.allCases)
    func `an operator sets up a container and looks at it`(place: Place) async throws {
        try await with(place) { shell, folder, gateway in
            let keyFile = folder.appending(path: "key.p8")
            try Data(gateway.signingKeyPEM.utf8).write(to: keyFile)
            let secretFile = folder.appending(path: "secret")
            try Data("a shared secret of at least 32 bytes\n".utf8).write(to: secretFile)
            let made = try await shell.json(
                "containers", "create", "-c", "iCloud.com.example.Art", "--topic",
                "com.example.Art", "--team-id", SampleGateway.teamID, "--key-id",
                SampleGateway.keyID, "--key-file", keyFile.path, "--shared-secret-file",
                secretFile.path)
            #expect(made.value(at: ["container"]) == "iCloud.com.example.Art")
            #expect(made.value(at: ["apns", "privateKey"]) == "(hidden)")
            let shown = try await shell.json("containers", "show", "-c", "iCloud.com.example.Art")
            guard case .object(var expected) = made else {
                Issue.record("\(made.text)")
                return
            }
            expected["halts"] = []
            let use = shown.value(at: ["use"])
            #expect(use?.value(at: ["devices", "use"]) == 0)
            expected["use"] = use
            #expect(shown == .object(expected))
            let table = try await shell.run("containers", "list")
            #expect(table.code == 0)
            #expect(
                table.output.split(separator: "\n").map {
                    $0.split(separator: " ").map(String.init)
                }
                    == [
                        [
                            "CONTAINER", "ENVIRONMENT", "TOPICS", "APNS", "KEY", "USER", "CLAIM",
                        ],
                        [
                            "iCloud.com.example.Art", "development", "com.example.Art",
                            "KEY1234567", "sub",
                        ],
                    ])
            let overview = try await shell.run("overview")
            #expect(overview.output.contains("0 entries are not settled."), "\(overview.output)")
        }
    }

    @Test(arguments: Place.allCases)
    func `a condition that cannot work is reported before it is saved`(place: Place) async throws {
        try await with(place) { shell, _, _ in
            try await shell.json(
                "containers", "create", "-c", "iCloud.com.example.Art", "--topic",
                "com.example.Art")
            let condition = "a LIKE '%x' AND b == %@ AND b == 2"
            let checked = try await shell.run(
                "predicate", "check", "--against", "iCloud.com.example.Art", "--record-type",
                "Todo", condition, "--args", "[1]")
            #expect(checked.code == 0, "\(checked.complaint)")
            #expect(
                checked.output == """
                    valid: a LIKE "%x" AND b == 1 AND b == 2
                    warning: % is an ordinary character in a pattern of LIKE; the wildcards are * \
                    and ?
                      at byte 7: '%x'
                      hint: did you mean LIKE "*x"?
                    warning: no record can satisfy this condition
                      hint: join alternatives with OR

                    """)
            let refused = try await shell.run(
                "predicate", "check", "--against", "iCloud.com.example.Art", "--record-type",
                "Todo", "a ==")
            #expect(refused.code == 1)
            let inbox = try await shell.run(
                "notifications", "list", "-c", "iCloud.com.example.Art", "--user", "_alice")
            #expect(inbox.output.contains("are off, so nothing is kept in them"))
            _ = try await shell.run(
                "containers", "set", "-c", "iCloud.com.example.Art", "--inbox", "on")
            let kept = try await shell.run(
                "notifications", "list", "-c", "iCloud.com.example.Art", "--user", "_alice")
            #expect(kept.output == "none\n")
            let set = try await shell.run(
                "sources", "set", "shop", "-c", "iCloud.com.example.Art", "--preset", "hasura")
            for text in ["The secret is not shown again.", "pg_create_event_trigger", "secret='"] {
                #expect(set.output.contains(text), "\(text): \(set.output)")
            }
            let rotated = try await shell.json(
                "sources", "rotate", "shop", "-c", "iCloud.com.example.Art", "--grace-hours", "1")
            #expect(rotated.value(at: ["verification", "secrets", "0", "until"]) != nil)
            #expect(rotated.value(at: ["verification", "secrets", "1", "secret"]) == "(hidden)")
            let shown = try await shell.run(
                "sources", "show", "shop", "-c", "iCloud.com.example.Art")
            for text in ["BELFRY_SOURCE_SECRET", "belfry sources rotate makes a new one"] {
                #expect(shown.output.contains(text), "\(text): \(shown.output)")
            }
            let refusals = try await shell.run(
                "sources", "refused", "-c", "iCloud.com.example.Art")
            #expect(refusals.output == "none\n")
        }
    }

    @Test(arguments: Place.allCases)
    func `keys and sources are created, listed and revoked`(place: Place) async throws {
        try await with(place) { shell, folder, _ in
            try await shell.json(
                "containers", "create", "-c", "iCloud.com.example.Art", "--topic",
                "com.example.Art")
            let key = try await shell.json(
                "keys", "create", "-c", "iCloud.com.example.Art", "--kind", "apiToken")
            guard case .string(let id)? = key.value(at: ["id"]),
                case .string(let secret)? = key.value(at: ["secret"])
            else { throw LogEnded(description: key.text) }
            let listed = try await shell.json("keys", "list", "-c", "iCloud.com.example.Art")
            #expect(listed.value(at: ["keys", "0", "id"]) == .string(id))
            #expect(!listed.text.contains(secret))
            try await shell.json("keys", "revoke", "-c", "iCloud.com.example.Art", id)
            let again = try await shell.run("keys", "revoke", "-c", "iCloud.com.example.Art", id)
            #expect(again.code == 1)
            #expect(again.complaint == "error: there is no active key \"\(id)\"\n")

            let source = try await shell.run(
                "sources", "set", "shop", "-c", "iCloud.com.example.Art", "--preset", "debezium")
            #expect(source.output.contains("whsec_"), "\(source.output)")
            #expect(source.output.contains("The secret is not shown again."))
            let sources = try await shell.json("sources", "list", "-c", "iCloud.com.example.Art")
            #expect(sources.value(at: ["sources", "0", "preset"]) == "debezium")
            #expect(!sources.text.contains("whsec_"))
            let unknown = try await shell.run(
                "sources", "set", "x", "-c", "iCloud.com.example.Art", "--preset", "nosuch")
            #expect(unknown.code == 1)
            #expect(unknown.complaint.contains("preset"), "\(unknown.complaint)")

            // The sender makes the secret of such a source, and the relay has never shown it.
            let file = folder.appending(path: "secret")
            try Data("appwrite-key\n".utf8).write(to: file)
            let own = try await shell.run(
                "sources", "set", "base", "-c", "iCloud.com.example.Art", "--preset", "appwrite",
                "--secret-file", file.path)
            #expect(own.output.contains("The secret is the one that its sender made"))
            #expect(!own.output.contains("rotate makes a new one"))
        }
    }

    @Test(arguments: Place.allCases)
    func `a schema is imported, shown and exported as text`(place: Place) async throws {
        let text = """
            DEFINE SCHEMA

                RECORD TYPE Note (
                    text STRING QUERYABLE,
                    GRANT READ TO "_world"
                );

            """
        try await with(place) { shell, folder, _ in
            try await shell.json(
                "containers", "create", "-c", "iCloud.com.example.Art", "--topic",
                "com.example.Art")
            let file = folder.appending(path: "schema.ckdb")
            try Data(text.utf8).write(to: file)
            let imported = try await shell.run(
                "schema", "import", "-c", "iCloud.com.example.Art", file.path)
            #expect(imported.code == 0, "\(imported.complaint)")
            let exported = try await shell.run("schema", "export", "-c", "iCloud.com.example.Art")
            #expect(exported.output.hasPrefix(text), "\(exported.output)")
            let kept = try await shell.json(
                "schema", "keep", "-c", "iCloud.com.example.Art", "Note", "--forget")
            #expect(kept.value(at: ["shadow"]) == false)
            let shown = try await shell.json("schema", "show", "-c", "iCloud.com.example.Art")
            #expect(shown.value(at: ["recordTypes", "0", "shadow"]) == false)
            try Data("DEFINE SCHEMA\nRECORD".utf8).write(to: file)
            let wrong = try await shell.run(
                "schema", "import", "-c", "iCloud.com.example.Art", file.path)
            #expect(wrong.code == 1)
            #expect(
                wrong.complaint == "error: text: line 2: TYPE is expected, but the text ends\n")
        }
    }

    @Test(arguments: Place.allCases)
    func `an unknown container is refused by every command`(place: Place) async throws {
        try await with(place) { shell, _, _ in
            let commands: [[String]] = [
                ["containers", "show"], ["keys", "list"], ["sources", "list"],
                ["subscriptions", "list"], ["devices", "list"], ["changes", "parked"],
                ["deliveries", "retries"], ["deliveries", "dead-letters"],
            ]
            for command in commands {
                let ending = try await BuiltBelfry.run(
                    command + ["-c", "nope"] + shell.place, environment: shell.environment)
                #expect(ending.code == 1, "\(command): \(ending.complaint)")
                #expect(
                    ending.complaint == "error: there is no container nope in development\n",
                    "\(command)")
            }
        }
    }

    @Test func `an operator sees users' data and the outcome of changes after the fact`()
        async throws
    {
        let folder = try Folder.make()
        let file = folder.appending(path: "relay.sqlite").path
        let gateway = try await SampleGateway.start(in: folder)
        let relay = try await ServedBelfry.start(on: file, for: gateway)
        let container = try await SampleContainer.create(on: relay.client, for: gateway)
        for device in SampleDevice.usual { try await container.register(device) }
        try await container.set(source: "shop", ["preset": "debezium"])
        try await container.save(.query("q", #"artist = "artist-1""#))
        try await container.post(.change("create", "a1"))
        try await container.post(["op": "?"], to: "shop")
        _ = try await gateway.simulated.pushes(count: 2, within: .patience)
        let running = Shell(
            place: ["--url", relay.client.adminURL],
            environment: ["BELFRY_ADMIN_TOKEN": RelayClient.adminToken])
        try await check(running)
        let code = await relay.end()
        #expect(code == 0, "\(relay.logged)")
        let over = Shell(place: ["--database", file], environment: Self.noReserve)
        try await check(over)
        let receipts = try await over.json("deliveries", "receipts")
        #expect(receipts.value(at: ["receipts", "1", "outcome"]) == "accepted")
        try await checkDeliveries(over)
        let dropped = try await over.json("changes", "drop", "-c", "iCloud.com.example.Art", "1")
        #expect(dropped.value(at: ["dropped", "0", "deleted"]) == true)
        // A change that does not exist does not keep the others from being tried.
        let again = try await BuiltBelfry.run(
            ["changes", "drop", "-c", "iCloud.com.example.Art", "1", "2", "--database", file],
            environment: Self.noReserve)
        #expect(again.code == 1, "\(again.complaint)")
        for number in 1...2 {
            let line = "\(number) could not be dropped: there is no parked change \(number)\n"
            #expect(again.output.contains(line), "\(again.output)")
        }
        await gateway.simulated.stop()
    }

    private func checkDeliveries(_ shell: Shell) async throws {
        let deliveries = try await shell.json("deliveries", "list", "--state", "delivered")
        #expect(deliveries.value(at: ["deliveries", "1", "attempts"]) == 1)
        #expect(deliveries.value(at: ["deliveries", "2"]) == nil)
        let id = deliveries.value(at: ["deliveries", "0", "deliveryID"])
        guard case .string(let id)? = id else {
            Issue.record("\(deliveries.text)")
            return
        }
        let delivery = try await shell.json("deliveries", "show", id)
        #expect(delivery.value(at: ["state"]) == "delivered")
        #expect(delivery.value(at: ["receipts", "0", "outcome"]) == "accepted")
        #expect(delivery.value(at: ["receipts", "0", "deliveryID"]) == .string(id))
    }

    private func check(_ shell: Shell) async throws {
        let subscriptions = try await shell.json(
            "subscriptions", "list", "-c", "iCloud.com.example.Art")
        #expect(subscriptions.value(at: ["subscriptions", "0", "subscriptionID"]) == "q")
        #expect(subscriptions.value(at: ["subscriptions", "0", "userRecordName"]) == "alice")
        let devices = try await shell.json(
            "devices", "list", "-c", "iCloud.com.example.Art", "--user", "alice")
        #expect(devices.value(at: ["devices", "0", "deviceID"]) == "tablet")
        #expect(devices.value(at: ["devices", "2"]) == nil)
        #expect(!devices.text.contains(SampleDevice.usual[1].token))
        let changes = try await shell.json("changes", "list", "-c", "iCloud.com.example.Art")
        #expect(changes.value(at: ["changes", "0", "source"]) == "database")
        let parked = try await shell.json("changes", "parked", "-c", "iCloud.com.example.Art")
        #expect(parked.value(at: ["parked", "0", "number"]) == 1)
        let letters = try await shell.run(
            "deliveries", "dead-letters", "-c", "iCloud.com.example.Art")
        #expect(letters.output == "none\n")
    }
}
