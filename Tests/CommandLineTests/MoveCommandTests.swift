import Foundation
import GatewaySimulator
import RelayTestKit
import Testing

/// `belfry move` as an operator runs it, including kills in the middle.
@Suite(
    .serialized, .timeLimit(.minutes(30)),
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct MoveCommandTests {
    private let file: String
    private let url: String
    private let schema: String
    /// A service file (`pg_service.conf`) that calls the server `house`.
    private let services: String

    init() throws {
        let server = try PostgresServer.ofStores()
        file = try Folder.make().appending(path: "relay.sqlite").path
        url = "postgresql://postgres@/postgres?host=\(server.folder)"
        schema = server.schemaName()
        services = file + "-services"
        try "[house]\nhost=\(server.folder)\nuser=postgres\ndbname=postgres\n".write(
            toFile: services, atomically: true, encoding: .utf8)
    }

    private func move(killedAt point: String? = nil) async throws -> BuiltBelfry.Ending {
        try await BuiltBelfry.run(
            ["move", "--from", file, "--to", url, "--to-schema", schema],
            environment: point.map { ["BELFRY_CRASH_AT": $0] } ?? [:])
    }

    @Test(arguments: ["moved:1", "commit", "commit:0", "commit:x", ""])
    func `an unknown point of a planned crash is refused`(point: String) async throws {
        let moved = try await move(killedAt: point)
        #expect(moved.code == 78)
        #expect(moved.complaint.contains("BELFRY_CRASH_AT: must be POINT:NUMBER"))
        let served = try await BuiltBelfry.run(["serve"], environment: ["BELFRY_CRASH_AT": point])
        #expect(served.code == 78)
        #expect(served.complaint.contains("one of the points commit, committed, match, "))
    }

    @Test func `a move that is killed and repeated ends with one store`() async throws {
        let gateway = try await SampleGateway.start(
            in: URL(filePath: file).deletingLastPathComponent())
        let relay = try await ServedBelfry.start(on: file, for: gateway)
        let container = try await SampleContainer.create(on: relay.client, for: gateway)
        for device in SampleDevice.usual { try await container.register(device) }
        let held = try await move()
        #expect(held.code == 69 && held.complaint.contains("one relay at a time"))
        #expect(await relay.end() == 0)
        for point in ["commit:2", "committed:3", "commit:5"] {
            #expect(try await move(killedAt: point).code == -SIGKILL)
            // At the first point nothing has been moved yet, and the source is not marked.
            if point == "commit:2" { continue }
            let started = try await BuiltBelfry.run(ServedBelfry.arguments(on: file, for: gateway))
            #expect(started.code == 69 && started.complaint.contains("run belfry move again"))
            let half = try await BuiltBelfry.run(["check", "--database", url, "--schema", schema])
            #expect(half.code == 1 && half.output.contains("are being moved into it"), "\(half)")
        }
        let moved = try await move()
        #expect(moved.code == 0 && moved.output.contains("equal at both ends, sound"), "\(moved)")
        let check = try await BuiltBelfry.run(["check", "--database", url, "--schema", schema])
        #expect(check.code == 0 && check.output.contains("sound"))
        // Other commands accept the schema as a shard's name, since it may be one. A file is no
        // shard.
        let list = ["containers", "list", "--shard", schema, "--database"]
        let listed = try await BuiltBelfry.run(list + [url])
        #expect(listed.code == 0 && listed.output.contains("CONTAINER"), "\(listed)")
        let misnamed = try await BuiltBelfry.run(list + [file])
        #expect(misnamed.code == 78 && misnamed.complaint.contains("which is a single store"))
        let restored = try await BuiltBelfry.run(
            ["restore", "--database", url, "--schema", schema])
        #expect(restored.code == 0, "\(restored)")
        #expect(restored.output.contains("has an identity of its own: the log up to"))
        let again = try await move()
        #expect(again.code == 69 && again.complaint.contains("--take-back"))
        let back = try await BuiltBelfry.run(["move", "--from", file, "--take-back"])
        #expect(back.code == 0 && back.output.contains("with an identity of its own"))
        let old = try await ServedBelfry.start(on: file, for: gateway)
        #expect(await old.end() == 0)
        await gateway.simulated.stop()
    }

    @Test(arguments: ["backup", "restore"])
    func `commands for files explain what to do on PostgreSQL instead`(command: String) async throws
    {
        let ending = try await BuiltBelfry.run([command, file, "--database", url])
        #expect(ending.code == 64 && ending.complaint.contains("pg_basebackup"), "\(ending)")
    }

    @Test(arguments: ["service=house", "postgresql:///?service=house"])
    func `a database can be named by its service`(name: String) async throws {
        func run(_ arguments: String..., with more: [String: String] = [:]) async throws -> String {
            let ending = try await BuiltBelfry.run(
                arguments, environment: ["PGSERVICEFILE": services].merging(more) { $1 })
            #expect(ending.code == 0, "\(ending)")
            return ending.output
        }
        let made = try await run("migrate", "--database", name, "--schema", schema)
        #expect(made.contains("service house: p0001_createSchema"), "\(made)")
        let nodes = try await run("nodes", "--database", name, "--schema", schema)
        #expect(nodes == "no relay\n")
        // A list with a single schema is asked as a list of shards.
        let shard = try await run("nodes", "--database", name, "--schemas", " \(schema),")
        #expect(shard == "no relay\n")
        let check = try await run(
            "check", with: ["BELFRY_STORAGE_URL": name, "BELFRY_STORAGE_SCHEMA": schema])
        #expect(check.contains("sound"), "\(check)")
        let list = try await run(
            "containers", "list", "--json", "--database", name,
            with: ["BELFRY_STORAGE_SCHEMA": schema])
        #expect(list.contains("containers"), "\(list)")
    }

    /// The former primary is named first in the service file, and still accepts writes.
    @Test func `of a service's servers the promoted one is used`() async throws {
        let former = try PostgresServer(["fsync=on"])
        let promoted = try PostgresServer(["fsync=on"], copyOf: former)
        defer {
            promoted.end()
            former.end()
        }
        try promoted.sql("SELECT pg_promote()")
        let both = file + "-both"
        let hosts = "\(former.folder),\(promoted.folder)"
        try "[house]\nhost=\(hosts)\nuser=postgres\ndbname=postgres\n".write(
            toFile: both, atomically: true, encoding: .utf8)
        let ending = try await BuiltBelfry.run(
            ["migrate", "--database", "service=house", "--schema", schema],
            environment: ["PGSERVICEFILE": both])
        #expect(ending.code == 0, "\(ending)")
        let count = "SELECT count(*) FROM pg_namespace WHERE nspname = '\(schema)'"
        #expect(try former.sql(count) == "0")
        #expect(try promoted.sql(count) == "1")
    }

    @Test func `messages about a database contain no password`() async throws {
        for name in ["password=geheim host=h", "postgresql://u:geheim@h/d", "mysql://u:geheim@h/d"]
        {
            for command in [["containers", "list"], ["check"], ["nodes"], ["migrate"]] {
                let ending = try await BuiltBelfry.run(command + ["--database", name])
                #expect(ending.code != 0)
                #expect(!ending.complaint.contains("geheim"), "\(command): \(ending.complaint)")
            }
        }
        let sealed = try await BuiltBelfry.run(["migrate", "--reseal", "--database", url])
        #expect(sealed.code == 64 && sealed.complaint.contains("--reseal is only for files"))
        let nobody = try await BuiltBelfry.run(["nodes", "--database", url, "--schemas", ","])
        #expect(nobody.code == 64 && nobody.complaint.contains("must name at least one schema"))
        let away = try await BuiltBelfry.run(
            ["nodes", "--database", "postgresql://postgres@127.0.0.1:1/none", "--schemas", "a,b"])
        #expect(away.code == 69 && away.output.contains("cannot be reached"), "\(away)")
        // The error names the database once.
        for command in ["nodes", "migrate", "check"] {
            let one = try await BuiltBelfry.run(
                [command, "--database", "postgresql://postgres@127.0.0.1:1/none"])
            let said = one.complaint.components(separatedBy: "127.0.0.1:1/none").count
            #expect(one.code == 69 && said == 2, "\(one)")
            #expect(one.complaint.contains(": the server cannot be reached ("), "\(one)")
        }
    }

    @Test func `a schema beside a file is refused`() async throws {
        for command in [["check"], ["migrate"], ["restore", file + "-copy"]] {
            let ending = try await BuiltBelfry.run(
                command + ["--database", file, "--schema", schema])
            #expect(ending.code == 64, "\(command): \(ending)")
            #expect(ending.complaint.contains("--schema is for a database"), "\(command)")
        }
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    @Test func `impossible moves are refused before anything is changed`() async throws {
        func refused(_ arguments: String...) async throws -> String {
            let ending = try await BuiltBelfry.run(["move"] + arguments)
            #expect(ending.code != 0)
            return ending.complaint
        }
        #expect(try await refused("--from", file).contains("give either --to or --take-back"))
        #expect(
            try await refused("--from", file, "--to", file + "2").contains("belfry backup"))
        #expect(try await refused("--from", file, "--to", url).contains("there is no store at"))
        let secret = try await refused(
            "--from", file, "--to", "postgresql://u:geheim@127.0.0.1/d")
        #expect(secret.contains("it contains a password") && !secret.contains("geheim"))
        #expect(try await refused("--from", url, "--to", url).contains("the same store"))
        // `--from-schema` beside a file must be refused: the schema was meant for the other end.
        let misplaced = try await refused("--from", file, "--from-schema", schema, "--to", url)
        #expect(misplaced.contains("--from-schema is for a database; \(file) is a file"))
        #expect(
            try await refused("--from", url, "--to", file, "--to-schema", schema)
                .contains("--to-schema is for a database"))
        #expect(
            try await refused("--from", url, "--take-back", "--to-schema", schema)
                .contains("--to-schema needs --to"))
        #expect(!FileManager.default.fileExists(atPath: file))
    }
}
