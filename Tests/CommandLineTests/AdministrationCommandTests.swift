import Foundation
import RelayModel
import RelayTestKit
import Storage
import StorageSQLite
import Testing

/// The built commands, on a file that no relay has open.
@Suite struct AdministrationCommandTests {
    private static let container = ["-c", "iCloud.com.example.Art"]

    @Test func `a container with keys and a source is set up on a file`() async throws {
        let store = try TemporaryStore()
        let file = ["--database", store.path, "--json"]
        let create = try await CommandRun(
            ["containers", "create", "--topic", "com.example.Art"] + Self.container + file)
        #expect(create.code == 0, "\(create.errors)")
        let again = try await CommandRun(
            ["containers", "create", "--topic", "com.example.Art"] + Self.container + file)
        #expect(again.code == 1)
        #expect(
            again.errors
                == "error: the container iCloud.com.example.Art/development exists; change it with "
                + "PATCH\n")
        let key = try await CommandRun(
            ["keys", "create", "--kind", "apiToken"] + Self.container + file)
        #expect(try key.member("secret") != nil, "\(key.errors)")
        let source = try await CommandRun(
            ["sources", "set", "app", "--preset", "belfry"] + Self.container + file)
        #expect(try source.member("url") != nil, "\(source.errors)")
        let listed = try await CommandRun(
            ["sources", "list", "--database", store.path] + Self.container)
        #expect(listed.output.hasPrefix("NAME  PRESET  VERIFICATION"))
        let parked = try await CommandRun(
            ["changes", "parked", "--database", store.path] + Self.container)
        #expect(parked.output == "none\n")
        let migrate = try await CommandRun(["migrate", "--database", store.path])
        #expect(migrate.output == "\(store.path) is up to date\n")
    }

    @Test func `a file that somebody has open is left alone`() async throws {
        let fixture = try TemporaryStore()
        let store = try fixture.open()
        let run = try await CommandRun(["containers", "list", "--database", fixture.path])
        #expect(run.code == 69)
        #expect(run.errors.contains("cannot be opened"))
        await store.close()
    }

    @Test func `without a relay, a token, or good arguments the exit code says which`() async throws
    {
        let nobody = try await CommandRun(
            ["containers", "list", "--url", "http://127.0.0.1:1", "--admin-token", "x"])
        #expect(nobody.code == 69)
        #expect(nobody.errors.hasPrefix("error: no relay answers at http://127.0.0.1:1"))
        let token = try await CommandRun(["containers", "list"])
        #expect(token.code == 78)
        let usage = try await CommandRun(["keys", "create"])
        #expect(usage.code == 64)
        let configuration = try await CommandRun(
            ["containers", "list"], environment: ["BELFRY_HTTP_PORT": "x"])
        #expect(configuration.code == 78)
        #expect(configuration.errors.contains("http.port"))
    }
}

/// One run of the built executable.
struct CommandRun {
    let code: Int32
    let output: String
    let errors: String

    init(_ arguments: [String], environment: [String: String] = [:]) async throws {
        let process = Process()
        let products = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process.executableURL = URL(filePath: products).deletingLastPathComponent()
            .appending(path: "belfry")
        process.arguments = arguments
        process.environment = environment
        let (outputPipe, errorPipe) = (Pipe(), Pipe())
        process.standardOutput = outputPipe
        process.standardError = errorPipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let outputData = try outputPipe.fileHandleForReading.readToEnd() ?? Data()
        let errorData = try errorPipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        code = process.terminationStatus
        output = String(decoding: outputData, as: UTF8.self)
        errors = String(decoding: errorData, as: UTF8.self)
    }

    /// A member of the JSON that was printed.
    func member(_ name: String) throws -> JSONValue? {
        guard case .object(let object) = try JSONValue(parsing: output) else { return nil }
        return object[name]
    }
}
