import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// The administrative commands of the built executable, run on a file that no relay has open.
@Suite struct AdministrationCommandTests {
    private static let container = ["-c", "iCloud.com.example.Art"]

    @Test func `a container with keys and a source is set up on a file`() async throws {
        let store = try TemporaryStore()
        try await BuiltBelfry.makeStore(at: store.path)
        let file = ["--database", store.path, "--json"]
        let create = try await BuiltBelfry.run(
            ["containers", "create", "--topic", "com.example.Art"] + Self.container + file)
        #expect(create.code == 0, "\(create.complaint)")
        let again = try await BuiltBelfry.run(
            ["containers", "create", "--topic", "com.example.Art"] + Self.container + file)
        #expect(again.code == 1)
        #expect(
            again.complaint
                == "error: the container iCloud.com.example.Art/development already exists; change "
                + "it "
                + "with PATCH (belfry containers set)\n")
        let key = try await BuiltBelfry.run(
            ["keys", "create", "--kind", "apiToken"] + Self.container + file)
        #expect(try key.member("secret") != nil, "\(key.complaint)")
        let source = try await BuiltBelfry.run(
            ["sources", "set", "app", "--preset", "belfry"] + Self.container + file)
        #expect(try source.member("url") != nil, "\(source.complaint)")
        let listed = try await BuiltBelfry.run(
            ["sources", "list", "--database", store.path] + Self.container)
        #expect(listed.output.hasPrefix("NAME  PRESET  VERIFICATION"))
        #expect(listed.output.contains("  REFUSED  IGNORED  "), "\(listed.output)")
        let rated = try await BuiltBelfry.run(
            ["containers", "set", "--rate", "key=500", "--rate", "user=20"] + Self.container + file)
        #expect(rated.code == 0, "\(rated.complaint)")
        let shown = try await BuiltBelfry.run(["containers", "show"] + Self.container + file)
        #expect(try shown.member("rates") == ["key": 500, "user": 20], "\(shown.output)")
        for wrong in ["key", "key=-1", "key=x", "key=1000001", "nobody=1"] {
            let refused = try await BuiltBelfry.run(
                ["containers", "set", "--rate", wrong] + Self.container + file)
            #expect([1, 64, 78].contains(refused.code), "\(wrong)")
            #expect(refused.complaint.contains("key") || refused.complaint.contains("nobody"))
        }
        let twice = try await BuiltBelfry.run(
            ["containers", "set", "--quota", "zones=1", "--quota", "zones="] + Self.container
                + file)
        #expect(twice.code == 64)
        #expect(twice.complaint.contains("--quota zones is given twice"), "\(twice.complaint)")
        let parked = try await BuiltBelfry.run(
            ["changes", "parked", "--database", store.path] + Self.container)
        #expect(parked.output == "none\n")
        let migrate = try await BuiltBelfry.run(["migrate", "--database", store.path])
        #expect(migrate.output == "\(store.path) is up to date\n")
    }

    @Test func `a file that a relay has open is left alone`() async throws {
        let fixture = try TemporaryStore()
        let store = try fixture.open()
        let run = try await BuiltBelfry.run(["containers", "list", "--database", fixture.path])
        #expect(run.code == 69)
        #expect(run.complaint.contains("cannot be opened"))
        await store.close()
    }

    @Test func `exit codes distinguish a missing relay, a bad token and bad arguments`()
        async throws
    {
        let nobody = try await BuiltBelfry.run(
            ["containers", "list", "--url", "http://127.0.0.1:1", "--admin-token", "x"])
        #expect(nobody.code == 69)
        #expect(nobody.complaint.hasPrefix("error: no relay answers at http://127.0.0.1:1"))
        let token = try await BuiltBelfry.run(["containers", "list"])
        #expect(token.code == 78)
        let usage = try await BuiltBelfry.run(["keys", "create"])
        #expect(usage.code == 64)
        let configuration = try await BuiltBelfry.run(
            ["containers", "list"], environment: ["BELFRY_HTTP_PORT": "x"])
        #expect(configuration.code == 78)
        #expect(configuration.complaint.contains("http.port"))
    }
}
