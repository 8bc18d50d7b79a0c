import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// The executable as a shell user sees it: help, refusals and exit codes.
@Suite(.timeLimit(.minutes(30))) struct CommandLineTests {
    // MARK: Help

    @Test func `help names every command`() async throws {
        let ending = try await BuiltBelfry.run(["--help"])
        #expect(ending.code == 0)
        let commands = [
            "dev", "serve", "overview", "containers", "keys", "sources", "subscriptions", "devices",
            "changes", "deliveries", "migrate", "predicate", "gateway", "bench",
        ]
        let named = commands.filter { command in
            ending.output.split(separator: "\n").contains { $0.hasPrefix("  \(command) ") }
        }
        #expect(named == commands)
        #expect(ending.output.contains("CloudKit-style subscriptions for any database."))
    }

    static let commands = [
        "dev", "serve", "overview", "containers", "containers list", "containers show",
        "containers create", "containers set", "keys", "keys list", "keys create", "keys revoke",
        "sources", "sources list", "sources show", "sources set", "sources delete",
        "subscriptions", "subscriptions list", "subscriptions delete", "devices", "devices list",
        "devices delete", "changes", "changes list", "changes show", "changes tail",
        "changes parked", "changes replay", "log", "log show", "log level", "certificates renew",
        "changes drop", "deliveries", "deliveries list", "deliveries show",
        "deliveries receipts", "deliveries retries", "deliveries dead-letters",
        "deliveries redrive", "deliveries drop", "migrate", "move", "nodes", "shards", "predicate",
        "predicate evaluate", "predicate check", "gateway", "bench",
    ]

    @Test func `each command explains itself`() async throws {
        for command in Self.commands {
            let ending = try await BuiltBelfry.run(
                command.split(separator: " ").map(String.init) + ["--help"])
            #expect(ending.code == 0, "\(command): \(ending.complaint)")
            #expect(ending.output.hasPrefix("OVERVIEW: "), "\(command): \(ending.output)")
            #expect(ending.output.contains("USAGE: belfry \(command)"), "\(command)")
        }
    }

    // MARK: Refusals

    /// A command that must fail.
    struct Refusal: Sendable, CustomTestStringConvertible {
        var testDescription: String { arguments.joined(separator: " ") }
        var arguments: [String]
        var environment: [String: String] = [:]
        var code: Int32
        /// The whole complaint, or its beginning.
        var complaint: String

        init(
            _ arguments: String, _ environment: [String: String] = [:], code: Int32,
            _ complaint: String
        ) {
            self.arguments = arguments.split(separator: " ").map(String.init)
            self.environment = environment
            self.code = code
            self.complaint = complaint
        }
    }

    static let refusals = [
        Refusal(
            "serve --nonsense 1", code: 78,
            """
            belfry: the configuration cannot be used:
              --nonsense is not a setting; see docs/configuration.md

            """),
        Refusal(
            "serve --http-port 99999 --delivery-in-flight none", code: 78,
            """
            belfry: the configuration cannot be used:
              http.port (--http-port, BELFRY_HTTP_PORT): "99999" must be a whole number from 0 to \
            65535
              delivery.inFlight (--delivery-in-flight, BELFRY_DELIVERY_IN_FLIGHT): "none" must be \
            a whole number from 1 to 16384

            """),
        Refusal(
            "serve", ["BELFRY_HTTP_PORT": "http"], code: 78,
            """
            belfry: the configuration cannot be used:
              http.port (--http-port, BELFRY_HTTP_PORT): "http" must be a whole number from 0 to \
            65535

            """),
        Refusal(
            "serve --storage-schema house", code: 78,
            """
            belfry: the configuration cannot be used:
              storage.schema has no effect without storage.url; set the other one too, or remove \
            this one

            """),
        Refusal(
            "serve --config /nowhere/belfry.json", code: 78,
            """
            belfry: the configuration cannot be used:
              the file /nowhere/belfry.json cannot be read: there is no such file

            """),
        Refusal(
            "containers list", code: 78,
            "error: no administrative token: give --admin-token, or set BELFRY_ADMIN_TOKEN; or "
                + "start belfry dev, which the commands of the same user find by themselves\n"),
        Refusal(
            "containers list --admin-token x --url http://127.0.0.1:1", code: 69,
            "error: no relay answers at http://127.0.0.1:1: "),
        Refusal(
            "containers list --database /nowhere/relay.sqlite", code: 69,
            "error: /nowhere/relay.sqlite cannot be opened: "),
        Refusal(
            "migrate --database /nowhere/relay.sqlite", code: 69,
            "error: /nowhere/relay.sqlite cannot be brought up to date: "),
        // Without `--container`, the token would be valid for all containers, which is more than
        // the user asked for.
        Refusal(
            "tokens create --label ci -e production", code: 64,
            "Error: --environment needs --container: without one, a token is for all containers"),
        Refusal(
            "keys list --admin-token x", code: 78,
            "error: no container: give --container, or start belfry dev\n"),
        Refusal("containers create", code: 64, "Error: Missing expected argument '--container"),
        Refusal("deliveries redrive -c c", code: 64, "Error: name deliveries, or give --reason"),
        Refusal(
            "deliveries drop -c c --all --reason BadTopic", code: 64,
            "Error: --all means all dead letters: leave out deliveries and --reason\n"),
        Refusal(
            "changes list -c c --admin-token x --shard b", code: 64,
            "Error: --shard is not allowed here: the call goes to the shard of the container\n"),
        Refusal("containers set -c c", code: 64, "Error: name a setting to change\n"),
        Refusal(
            "sources set shop -c c --follow off --slot s", code: 64,
            "Error: --follow off ends the following: leave out its other options\n"),
        Refusal("log level --minutes 5", code: 64, "Error: --minutes needs a level\n"),
        Refusal(
            "restore copy.sqlite --config belfry.json", code: 64, "Error: --config needs --from: "),
        Refusal(
            "changes list -c c --type Artwork --record Todo/t2", code: 64,
            "Error: --record is of the type Todo, and --type is Artwork\n"),
        Refusal("sources set shop -c c", code: 64, "Error: one of --preset, --follow and"),
        Refusal(
            "no-such-command", code: 64,
            "Error: there is no command 'belfry no-such-command'\n  See 'belfry --help'"),
        Refusal(
            "overveiw", code: 64,
            "Error: there is no command 'belfry overveiw'; did you mean 'belfry overview'?\n"),
        Refusal(
            "help overveiw", code: 64,
            "Error: there is no command 'belfry overveiw'; did you mean 'belfry overview'?\n"),
        Refusal(
            "sources lst -c c", code: 64,
            "Error: there is no command 'belfry sources lst'; did you mean 'belfry sources list'?"
        ),
        Refusal(
            "predicate eval a==1", code: 64,
            "Error: there is no command 'belfry predicate eval'; 'belfry predicate' has evaluate, "
                + "check\n"),
        Refusal(
            "hlep", code: 64,
            "Error: there is no command 'belfry hlep'; did you mean 'belfry help'?\n"),
        Refusal(
            "trigger create Todo t1 --url localhost:8080/changes/1/c/development/s", code: 78,
            "error: localhost:8080/changes/1/c/development/s is not the URL of a change source, as "
                + "belfry sources show prints it: "
                + "http(s)://HOST/changes/1/CONTAINER/ENVIRONMENT/SOURCE; did you mean "
                + "http://localhost:8080/changes/1/c/development/s?\n"),
        Refusal(
            "serve --http-prot 1", code: 78,
            """
            belfry: the configuration cannot be used:
              --http-prot is not a setting; did you mean --http-port?

            """),
        Refusal(
            "containers create -c c --team-id t --key-id k --key-file /nowhere/k.p8", code: 66,
            "error: there is no file /nowhere/k.p8\n"),
        Refusal(
            "containers create -c c --team-id t", code: 64,
            """
            Error: --team-id, --key-id and --key-file belong together
              See 'belfry containers create --help' for more information.

            """),
        Refusal(
            "overview --admin-token x --url localhost:8081", code: 78,
            "error: --url: \"localhost:8081\" is not a URL that begins with http:// or https://; "
                + "did you mean http://localhost:8081?\n"),
        Refusal(
            "overview --admin-token x --url http://127.0.0.1:99999", code: 78,
            "error: --url: \"http://127.0.0.1:99999\" is not a URL that begins with http:// or "
                + "https://, with a port up to 65535\n"),
        Refusal(
            "trigger create Todo t1 --secret x --url http://127.0.0.1:99999/changes/1/c/d/s",
            code: 78,
            "error: http://127.0.0.1:99999/changes/1/c/d/s is not the URL of a change source, as "
                + "belfry sources show prints it: "),
        Refusal(
            "serve --backup-s3-endpoint http://127.0.0.1:99999", code: 78,
            """
            belfry: the configuration cannot be used:
              backup.s3.endpoint (--backup-s3-endpoint, BELFRY_BACKUP_S3_ENDPOINT): \
            "http://127.0.0.1:99999" must be a URL that begins with https:// or http://, without a \
            path
            """),
        Refusal(
            "overview", ["BELFRY_ADMIN_TOKN": "x", "BELFRY_PORT_80_TCP": "tcp://10.0.0.1"],
            code: 78,
            "warning: BELFRY_ADMIN_TOKN is not a setting; did you mean BELFRY_ADMIN_TOKEN?\n"
                + "error: no administrative token: "),
        Refusal("predicate check price==", code: 1, ""),
        Refusal("dev --port 99999", code: 64, "Error: --port must be from 0 to 65535\n"),
        Refusal(
            "trigger create Todo t1", ["BELFRY_SOURCE_URL": ""], code: 78,
            "error: the URL of the change source is empty: give the one that belfry sources show "
                + "prints, with --url or BELFRY_SOURCE_URL\n"),
        Refusal(
            "trigger create Todo t1 --url http://127.0.0.1:1/changes/1/c/development/s",
            ["BELFRY_SOURCE_SECRET": ""], code: 78,
            "error: the secret of the change source is empty: give the one that was shown when it "
                + "was made, "
        ),
        // The HTTP client's own error message would show the whole header with the token.
        Refusal(
            "overview --admin-token secret\r --url http://127.0.0.1:1", code: 78,
            "error: the administrative token contains a line break: remove it\n"),
        Refusal(
            "trigger create Todo t1 --url http://127.0.0.1:1/changes/1/c/d/s --secret secret\n",
            code: 78,
            "error: the secret of the change source contains a line break: give it without one, "
                + "with --secret or BELFRY_SOURCE_SECRET\n"),
        // A secret that is not recognised as a `whsec_` secret would be sent as a bearer token, and
        // the relay would complain of a missing header.
        Refusal(
            "trigger create Todo t1 --url http://127.0.0.1:1/changes/1/c/d/s --secret whsec_AAAA",
            code: 78,
            "error: the secret of the change source begins with whsec_, but is incomplete: "),
        Refusal(
            "deliveries list -e production", code: 64,
            "Error: --environment needs --container: without one, a list is of all containers"),
        Refusal(
            "predicate evaluate --record {}", code: 64, "Error: --record needs a condition: "),
        Refusal(
            "predicate check --args [] ", code: 64, "Error: --args needs a condition: "),
        Refusal(
            "predicate check a==1 --fires-when entered", code: 64,
            "Error: --record-type and --fires-when need --against\n"),
        Refusal(
            "keys create -c c --kind serverToServer", code: 64,
            "Error: --kind serverToServer needs the public key: --public-key-file\n"),
        // An address of a database server may hold a password, which must not be printed.
        Refusal(
            "secrets rotate --database postgresql://u:secret@h/d --new-key-file k", code: 64,
            "Error: this command is only for files; for a store on PostgreSQL, start a relay "
                + "with "),
        // A script that retries after exit code 69 would retry this for ever.
        Refusal(
            "migrate --database postgresql://u:secret@h/d", code: 78,
            "error: the URL of the database cannot be used: "),
        Refusal(
            "restore --database postgresql://u:secret@h/d", code: 78,
            "error: the URL of the database cannot be used: "),
        Refusal(
            "move --take-back --from postgresql://u:secret@h/d", code: 78,
            "error: the URL of the database cannot be used: "),
        Refusal(
            "overview --database postgresql://u:secret@h/d", code: 78,
            "error: the URL of the database cannot be used: "),
        Refusal(
            "overview --database relay.sqlite --url http://127.0.0.1:1", code: 64,
            "Error: --url asks a running relay, and --database works without one: give one of "
                + "the two\n"),
        Refusal(
            "gateway --port 0 --ca-file /proc/none/ca.pem", code: 66,
            "error: the file /proc/none"),
        Refusal(
            "match --subscriptions /dev/null --changes /dev/null --matches /nowhere/out",
            code: 66, "error: the file /nowhere/out cannot be written: "),
        Refusal(
            "bench storage --directory /nowhere/at/all", code: 66,
            "error: --directory: there is no folder /nowhere/at/all\n"),
        Refusal(
            "bench storage --directory /dev/null", code: 66,
            "error: --directory: /dev/null is not a folder\n"),
        Refusal(
            "overview --admin-token x --url http://127.0.0.1:1 --ca-file /nowhere/ca.pem",
            code: 78, "error: --ca-file: there is no file /nowhere/ca.pem\n"),
        Refusal(
            "predicate evaluate --dialect where {", code: 64,
            "Error: condition: not JSON at byte 1: "),
        Refusal(
            "predicate evaluate a==1 --record [1", code: 64,
            "Error: --record: not JSON at byte 2: "),
    ]

    @Test(arguments: [
        (["containers", "show", "-c", ""], "container"),
        (["sources", "show", "", "-c", "c"], "source"),
        (["sources", "set", "", "-c", "c", "--preset", "belfry"], "source"),
        (["containers", "show", "-c", "c", "-e", ""], "environment"),
    ]) func `an empty name is refused and makes no other call`(
        arguments: [String], name: String
    ) async throws {
        let ending = try await BuiltBelfry.run(
            arguments + ["--admin-token", "x", "--url", "http://127.0.0.1:1"])
        #expect(ending.code == 64, "\(ending.complaint)")
        #expect(ending.complaint.hasPrefix("Error: \(name): must not be empty\n"))
    }

    @Test func `both ways to ask for help on serve list its settings`() async throws {
        let asked = try await BuiltBelfry.run(["help", "serve"])
        #expect(asked.code == 0)
        #expect(asked.output.contains("--http-port"))
        let shown = try await BuiltBelfry.run(["serve", "--help"])
        #expect(asked.output == shown.output)
    }

    @Test(arguments: refusals)
    func `impossible commands are refused with a reason and an exit code`(
        refusal: Refusal
    ) async throws {
        let ending = try await BuiltBelfry.run(refusal.arguments, environment: refusal.environment)
        #expect(ending.code == refusal.code, "\(ending.complaint)")
        #expect(ending.complaint.hasPrefix(refusal.complaint), "\(ending.complaint)")
    }

    @Test(arguments: [
        "check --database", "migrate --database", "backup out --database", "backup",
        "restore copy --database", "restore", "containers list --database",
        "secrets rotate --new-key-file key --database", "move --to postgresql://h/d --from",
    ])
    func `an empty name of a store is refused as such`(command: String) async throws {
        let words = command.split(separator: " ").map(String.init)
        let ending = try await BuiltBelfry.run(words + [""])
        #expect(ending.code == 64)
        #expect(
            ending.complaint.hasPrefix("Error: the name of the store is empty"),
            "\(ending.complaint)")
    }

    @Test func `a relay that cannot trust a certificate or bind a port says so`() async throws {
        let folder = try Folder.make()
        let gateway = try await SampleGateway.start(in: folder)
        let place = folder.appending(path: "relay.sqlite").path
        let usual = ServedBelfry.settings(on: place, for: gateway)
        let taken = "\(gateway.simulated.port)"
        let cases: [(settings: [String: String], code: Int32, complaint: String)] = [
            (
                ["--apns-ca-file": "/nowhere/ca.pem"], 78,
                "apns.caFile: the file /nowhere/ca.pem cannot be read"
            ),
            (["--http-port": taken], 69, "belfry: 127.0.0.1:\(taken) cannot be served: "),
            (
                ["--http-host": "[::1]"], 69,
                "cannot be served: write an IPv6 address here without brackets"
            ),
            (
                ["--tls-certificate-file": "/nowhere/c.pem"], 78,
                "tls.certificateFile and tls.privateKeyFile: one of them is not set"
            ),
            (
                [
                    "--tls-certificate-file": "/nowhere/c.pem",
                    "--tls-private-key-file": "/nowhere/k.pem",
                ], 78, "tls.certificateFile: there is no file /nowhere/c.pem"
            ),
            (
                ["--storage-path": "/nowhere/relay.sqlite"], 69,
                "belfry: /nowhere/relay.sqlite cannot be used: cannot open "
            ),
        ]
        for (settings, code, complaint) in cases {
            let arguments = usual.merging(settings) { _, given in given }.flatMap { [$0, $1] }
            let ending = try await BuiltBelfry.run(["serve"] + arguments)
            #expect(ending.code == code, "\(settings): \(ending.complaint)")
            let last = ending.complaint.split(separator: "\n").last ?? ""
            #expect(last.contains(complaint), "\(settings): \(ending.complaint)")
        }
        await gateway.simulated.stop()
    }

    @Test func `a gateway whose port is in use says so and writes no file`() async throws {
        let folder = try Folder.make()
        let gateway = try await SampleGateway.start(in: folder)
        let file = folder.appending(path: "own-ca.pem").path
        let taken = "\(gateway.simulated.port)"
        let ending = try await BuiltBelfry.run(["gateway", "--port", taken, "--ca-file", file])
        #expect(ending.code == 69)
        #expect(
            ending.complaint
                == "error: 127.0.0.1:\(taken) cannot be served: Address already in use\n")
        #expect(!FileManager.default.fileExists(atPath: file))
        await gateway.simulated.stop()
    }

    @Test func `a gateway with an unknown host name says so`() async throws {
        let file = try Folder.make().appending(path: "own-ca.pem").path
        let ending = try await BuiltBelfry.run(
            ["gateway", "--host", "[::1]", "--port", "0", "--ca-file", file])
        #expect(ending.code == 69)
        #expect(
            ending.complaint
                == "error: [::1]:0 cannot be served: write an IPv6 address here without "
                + "brackets\n")
    }

    @Test func `errors in a gateway's script are reported with the file name`() async throws {
        let file = try Folder.make().appending(path: "script.json")
        try Data(#"{"rules": 1}"#.utf8).write(to: file)
        let ending = try await BuiltBelfry.run(["gateway", "--port", "0", "--script", file.path])
        #expect(ending.code == 64, "\(ending.complaint)")
        #expect(
            ending.complaint.hasPrefix("Error: --script \(file.path): the script"),
            "\(ending.complaint)")
    }

    @Test func `secrets are not printed at the start`() async throws {
        let folder = try Folder.make()
        let gateway = try await SampleGateway.start(in: folder)
        let relay = try await ServedBelfry.start(
            on: folder.appending(path: "relay.sqlite").path, for: gateway)
        let code = await relay.end()
        #expect(code == 0)
        #expect(relay.logged.contains("admin.token = (hidden)"), "\(relay.logged)")
        #expect(!relay.logged.contains(RelayClient.adminToken))
        #expect(relay.logged.contains("storage.path = "))
        await gateway.simulated.stop()
    }

    @Test func `completions know presets, environments and which options take a file`()
        async throws
    {
        let script = try await BuiltBelfry.run(["--generate-completion-script", "fish"])
        #expect(script.code == 0)
        func lines(_ words: String...) -> [Substring] {
            script.output.split(separator: "\n").filter { line in words.allSatisfy(line.contains) }
        }
        #expect(!lines("-l 'preset'", "debezium", "hasura").isEmpty)
        #expect(!lines("-l 'environment'", "'development production'").isEmpty)
        // The settings of `serve` are not options of the argument parser, but the script completes
        // them.
        #expect(!lines("serve", "--http-port", "--storage-path").isEmpty)
        // For an option that takes no file, the completion must not offer file names: fish
        // suppresses them with `-f`.
        let seed = lines("-l 'seed'")
        #expect(!seed.isEmpty && seed.allSatisfy { !$0.contains("-rfka") }, "\(seed)")
    }

    // MARK: dev

    /// Requests of the sandbox to itself must not go through the proxy in the user's environment.
    @Test(arguments: [
        [:], ["http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"],
    ])
    func `dev with the option once pushes to the right device and reports it`(
        environment: [String: String]
    ) async throws {
        let ending = try await BuiltBelfry.run(
            ["dev", "--once", "--port", "0"], environment: environment)
        #expect(ending.code == 0, "\(ending.complaint)")
        let wanted = [
            "Belfry is running. Container iCloud.com.example.Art (development) has two users:",
            "1. Save a subscription of alice", "2. Post a change that alice made on her phone",
            "Artwork/artwork-1: fired 1 of 1: new-artworks; 1 device got no push, because it made "
                + "the change",
            "The gateway got a push for alices-tablet:",
            "==> As expected: alices-tablet was pushed once, and no other device was.",
        ]
        for text in wanted { #expect(ending.output.contains(text), "\(text) in \(ending.output)") }
        #expect(
            ending.output.contains(#""title":"Nocturne""#) || ending.output.contains("Nocturne"))
    }

    // MARK: predicate

    @Test func `predicate evaluates and checks lines`() async throws {
        let evaluated = try await BuiltBelfry.run(
            ["predicate", "evaluate"],
            input: """
                {"predicate": "price > %@", "args": [3], "record": {"price": 4}}
                {"predicate": "price > 3", "records": [{"price": 4}, {"price": 2}, {"price": 9}]}
                {"predicate": "price >", "record": {}}

                """)
        #expect(evaluated.code == 0, "\(evaluated.complaint)")
        let lines = evaluated.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 3)
        #expect(lines.prefix(2) == [#"{"result":true}"#, #"{"count":2}"#])
        let error = try JSONValue(parsing: lines[2])
        #expect(error.value(at: ["error", "stage"]) == "parse")
        let checked = try await BuiltBelfry.run(
            ["predicate", "check", #"NOT (artist == "a" AND price IN {1, 2})"#, "--jsonl"])
        #expect(checked.code == 0, "\(checked.complaint)")
        let answer = try JSONValue(parsing: checked.output.trimmingCharacters(in: .newlines))
        #expect(answer.value(at: ["valid"]) == true)
        let whole = try await BuiltBelfry.run(
            ["predicate", "evaluate", "price > 3", "--record", #"{"price": 4}"#])
        #expect(whole.output == "true\n")
    }
}
