import Foundation
import RelayTestKit
import Storage
import Testing

@testable import belfry

/// `belfry dev` as a new user meets it.
@Suite struct DevCommandTests {
    /// A run of `belfry dev` that continues until the test ends it.
    struct Sandbox {
        let child: Child
        let output: LogLines
        let errors: LogLines

        static func start(
            _ arguments: [String], home: URL, until end: String = "Its administrative side"
        ) async throws -> Sandbox {
            let sandbox = Sandbox(
                child: Child(
                    ["dev"] + arguments,
                    environment: ["HOME": home.path, "TMPDIR": home.path]),
                output: LogLines(), errors: LogLines())
            try sandbox.child.run(
                input: .nullDevice, output: sandbox.output.pipe.fileHandleForWriting,
                error: sandbox.errors.pipe)
            _ = try await sandbox.output.line { $0.contains(end) }
            return sandbox
        }

        /// The API token in the commands that the sandbox prints (`ckAPIToken=…`).
        var apiToken: String? {
            output.text.firstMatch(of: /ckAPIToken=([0-9a-f]+)/).map { String($0.1) }
        }

        func end() async -> Int32 {
            child.signal(SIGTERM)
            return await child.ended()
        }
    }

    @Test func `a sandbox that is ended while it starts leaves no folder behind`() async throws {
        let home = try Folder.make()
        func folders() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: home.path)
                .filter { $0.hasPrefix("belfry-dev-") }
        }
        let child = Child(
            ["dev", "--port", "0"], environment: ["HOME": home.path, "TMPDIR": home.path])
        let output = LogLines()
        let errors = LogLines()
        try child.run(
            input: .nullDevice, output: output.pipe.fileHandleForWriting, error: errors.pipe)
        _ = try await Turns.yield { try !folders().isEmpty }
        child.signal(SIGTERM)
        #expect(await child.ended() == 0)
        #expect(try folders() == [])
    }

    /// Regression: the command that `dev` runs to try itself out went on listening, called a relay
    /// that no longer answered, and delayed the end.
    @Test func `a self test that is ended while it starts ends promptly`() async throws {
        let home = try Folder.make()
        let child = Child(
            ["dev", "--once", "--port", "0"],
            environment: ["HOME": home.path, "TMPDIR": home.path])
        let output = LogLines()
        let errors = LogLines()
        try child.run(
            input: .nullDevice, output: output.pipe.fileHandleForWriting, error: errors.pipe)
        _ = try await Turns.yield {
            try FileManager.default.contentsOfDirectory(atPath: home.path)
                .contains { $0.hasPrefix("belfry-dev-") }
        }
        child.signal(SIGINT)
        let code = await child.ended()
        #expect([0, 1].contains(code))
        if code == 1 {
            _ = try await errors.line {
                $0 == "belfry dev: it was ended before it had run the commands"
            }
        }
        #expect(!output.text.contains("http://127.0.0.1:0"), "\(output.text)")
    }

    @Test func `child processes inherit no open files`() async throws {
        let kept = fcntl(STDERR_FILENO, F_DUPFD, 100)
        defer { close(kept) }
        #expect(kept >= 100)
        let open = try await Shell.run("ls /proc/$$/fd").split(separator: "\n")
        #expect(open.contains("0") && !open.contains("\(kept)"), "\(open)")
    }

    /// Whether SIGHUP reaches a process that is started here; `nohup` makes processes ignore it.
    static var hangUpIsHeard: Bool {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let mask = status.firstMatch(of: /SigIgn:\s*([0-9a-f]+)/).map({ String($0.1) }),
            let ignored = UInt64(mask, radix: 16)
        else { return true }
        return ignored & 1 == 0
    }

    @Test(.enabled(if: DevCommandTests.hangUpIsHeard))
    func `a sandbox whose terminal is closed leaves no folder and no address`() async throws {
        let home = try Folder.make()
        let sandbox = try await Sandbox.start(["--port", "0"], home: home)
        let address = home.appending(path: ".local/state/belfry/dev.json").path
        #expect(FileManager.default.fileExists(atPath: address))
        sandbox.child.signal(SIGHUP)
        #expect(await sandbox.child.ended() == 0)
        #expect(!FileManager.default.fileExists(atPath: address))
        let left = try FileManager.default.contentsOfDirectory(atPath: home.path)
            .filter { $0.hasPrefix("belfry-dev-") }
        #expect(left == [])
    }

    @Test func `an empty folder name is not taken for the current folder`() async throws {
        let run = try await BuiltBelfry.run(["dev", "--port", "0", "--folder", ""])
        #expect(run.code == 64)
        #expect(run.complaint.hasPrefix("Error: --folder must not be empty\n"))
    }

    @Test func `other commands find the sandbox only while it runs`() async throws {
        let home = try Folder.make()
        let sandbox = try await Sandbox.start(["--port", "0"], home: home)
        let environment = ["HOME": home.path]
        let found = try await BuiltBelfry.run(
            ["containers", "list"], environment: environment)
        #expect(found.code == 0, "\(found.complaint)")
        #expect(found.output.contains("iCloud.com.example.Art"))
        #expect(found.complaint.hasPrefix("(belfry dev at http://127.0.0.1:"))
        let file = home.appending(path: ".local/state/belfry/dev.json").path
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        // The commands know the sandbox's container too.
        for command in [
            ["containers", "show"], ["sources", "list"], ["keys", "list"], ["schema", "show"],
            ["changes", "list"], ["deliveries", "list", "--user", "alice"], ["check"],
            ["backup", home.appending(path: "copy.sqlite").path],
        ] {
            let shown = try await BuiltBelfry.run(command, environment: environment)
            #expect(shown.code == 0, "\(command): \(shown.complaint)")
        }
        // The printed address has the port that was chosen, not the requested port 0.
        let source = try await BuiltBelfry.run(
            ["sources", "show", "database", "--json"], environment: environment)
        #expect(source.output.contains("/changes/1/"), "\(source.output)\(source.complaint)")
        #expect(!source.output.contains(":0/"), "\(source.output)")
        let unnamed = try await BuiltBelfry.run(
            ["sources", "list", "--url", "http://127.0.0.1:1", "--admin-token", "t"],
            environment: environment)
        #expect(unnamed.code == 78 && unnamed.complaint.contains("no container: give --container"))
        // An explicit `--url` takes precedence over the running sandbox.
        let other = try await BuiltBelfry.run(
            ["containers", "list", "--url", "http://127.0.0.1:1"], environment: environment)
        #expect(other.code == 78)
        #expect(await sandbox.end() == 0)
        let gone = try await BuiltBelfry.run(["containers", "list"], environment: environment)
        #expect(gone.code == 78)
    }

    @Test func `when one of two sandboxes ends the other one is found`() async throws {
        let home = try Folder.make()
        let first = try await Sandbox.start(["--port", "0"], home: home)
        let second = try await Sandbox.start(["--port", "0"], home: home)
        #expect(await second.end() == 0)
        let found = try await BuiltBelfry.run(
            ["containers", "list"], environment: ["HOME": home.path])
        #expect(found.code == 0, "\(found.complaint)")
        let side = try await first.output.line { $0.contains("Its administrative side") }
        let url = try #require(side.firstMatch(of: /http:[^,]*/)).0
        #expect(found.complaint.hasPrefix("(belfry dev at \(url))"), "\(found.complaint)")
        #expect(await first.end() == 0)
    }

    @Test func `a kept folder keeps its keys and its data`() async throws {
        let home = try Folder.make()
        let folder = home.appending(path: "sandbox").path
        let first = try await Sandbox.start(["--port", "0", "--folder", folder], home: home)
        let made = try await BuiltBelfry.run(
            ["keys", "create", "--kind", "apiToken", "-c", "iCloud.com.example.Art", "--json"],
            environment: ["HOME": home.path])
        #expect(made.code == 0, "\(made.complaint)")
        #expect(await first.end() == 0)
        let second = try await Sandbox.start(["--port", "0", "--folder", folder], home: home)
        #expect(second.apiToken != nil)
        #expect(second.apiToken == first.apiToken)
        let keys = try await BuiltBelfry.run(
            ["keys", "list", "-c", "iCloud.com.example.Art"], environment: ["HOME": home.path])
        #expect(keys.output.split(separator: "\n").count == 3, "\(keys.output)")
        #expect(await second.end() == 0)
    }

    @Test func `a kept folder that lost its keys gets new ones that its commands use`()
        async throws
    {
        let home = try Folder.make()
        let folder = home.appending(path: "sandbox")
        let file = folder.appending(path: "dev.json").path
        let arguments = ["--port", "0", "--folder", folder.path]
        let first = try await Sandbox.start(arguments, home: home)
        #expect(await first.end() == 0)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let open = try await BuiltBelfry.run(["dev"] + arguments, environment: ["HOME": home.path])
        #expect(open.code == 1)
        #expect(open.complaint.contains("(chmod 600); remove that file"), "\(open.complaint)")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        for text in ["{", "{}"] {
            try text.write(toFile: file, atomically: false, encoding: .utf8)
            let other = try await BuiltBelfry.run(
                ["dev"] + arguments, environment: ["HOME": home.path])
            #expect(other.code == 1)
            #expect(
                other.complaint.contains(
                    "dev.json cannot be read: its contents are not what belfry dev writes; "
                        + "remove that file"),
                "\(other.complaint)")
        }
        try FileManager.default.removeItem(atPath: file)
        let second = try await Sandbox.start(arguments, home: home)
        #expect(second.apiToken != first.apiToken)
        let posted = try await BuiltBelfry.run(
            ["trigger", "create", "Artwork", "a1"], environment: ["HOME": home.path])
        #expect(posted.code == 0, "\(posted.complaint)")
        let keys = try await BuiltBelfry.run(
            ["keys", "list", "-c", "iCloud.com.example.Art"], environment: ["HOME": home.path])
        #expect(keys.output.split(separator: "\n").count == 2, "\(keys.output)")
        #expect(await second.end() == 0)
    }

    @Test func `a temporary folder is private and is removed at the end`() async throws {
        let home = try Folder.make()
        func made() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: home.path)
                .filter { $0.hasPrefix("belfry-dev-") }
        }
        let sandbox = try await Sandbox.start(["--port", "0"], home: home)
        let folder = try #require(try made().first)
        let place = home.appending(path: folder).path
        let mode = try FileManager.default.attributesOfItem(atPath: place)[.posixPermissions]
        #expect(mode as? Int == 0o700)
        // The folder's name is random, so that nobody can guess it and create the folder first.
        #expect(folder.count == "belfry-dev-".count + 16)
        #expect(await sandbox.end() == 0)
        #expect(try made().isEmpty)
    }

    @Test func `a folder in use keeps the certificate that its relay trusts`() async throws {
        let home = try Folder.make()
        let folder = home.appending(path: "sandbox")
        let sandbox = try await Sandbox.start(["--port", "0", "--folder", folder.path], home: home)
        let file = folder.appending(path: "gateway-ca.pem")
        let before = try Data(contentsOf: file)
        let second = try await BuiltBelfry.run(
            ["dev", "--port", "0", "--folder", folder.path], environment: ["HOME": home.path])
        #expect(second.code == 69)
        #expect(second.complaint.contains("one relay at a time"), "\(second.complaint)")
        #expect(try Data(contentsOf: file) == before)
        #expect(await sandbox.end() == 0)
    }

    @Test func `a sandbox that starts beside another starting one makes no keys of its own`()
        async throws
    {
        let folder = try Folder.make().appending(path: "sandbox")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let lock = try DevFolderLock(folder)
        #expect(throws: StorageError.locked(path: folder.path, holder: "another belfry dev")) {
            try DevFolderLock(folder)
        }
        let second = try await BuiltBelfry.run(["dev", "--port", "0", "--folder", folder.path])
        #expect(second.code == 69)
        #expect(second.complaint.contains("one relay at a time"), "\(second.complaint)")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["dev.lock"])
        lock.end()
        try DevFolderLock(folder).end()
    }

    @Test func `a port in use is reported and the process ends`() async throws {
        let home = try Folder.make()
        let sandbox = try await Sandbox.start(["--port", "0"], home: home)
        let place = try await sandbox.output.line { $0.contains("/changes/1/") }
        let port = try #require(place.firstMatch(of: /127\.0\.0\.1:([0-9]+)/)).1
        let second = try await BuiltBelfry.run(
            ["dev", "--port", String(port)], environment: ["HOME": home.path])
        #expect(second.code == 69)
        #expect(
            second.complaint.contains(
                "127.0.0.1:\(port) cannot be served: Address already in use\n"))
        // Commands still find the first sandbox, which runs.
        let found = try await BuiltBelfry.run(
            ["containers", "list"], environment: ["HOME": home.path])
        #expect(found.code == 0)
        #expect(await sandbox.end() == 0)
    }

    @Test func `clients and the operator can share one port`() async throws {
        let home = try Folder.make()
        let first = try await Sandbox.start(["--port", "0"], home: home)
        let place = try await first.output.line { $0.contains("/changes/1/") }
        let port = String(try #require(place.firstMatch(of: /127\.0\.0\.1:([0-9]+)/)).1)
        #expect(await first.end() == 0)
        let sandbox = try await Sandbox.start(
            ["--port", port, "--admin-port", port], home: home)
        let found = try await BuiltBelfry.run(
            ["containers", "list"], environment: ["HOME": home.path])
        #expect(found.code == 0, "\(found.complaint)")
        #expect(found.complaint.hasPrefix("(belfry dev at http://127.0.0.1:\(port))"))
        #expect(await sandbox.end() == 0)
    }

    @Test func `a folder that cannot be created is reported`() async throws {
        let run = try await BuiltBelfry.run(["dev", "--folder", "/proc/none"])
        #expect(run.code == 1)
        #expect(run.complaint.hasPrefix("belfry dev: the folder /proc/none cannot be made: "))
        #expect(!run.complaint.contains("TMPDIR"))
        let own = try await BuiltBelfry.run(
            ["dev", "--once", "--port", "0"], environment: ["TMPDIR": "/proc/none"])
        #expect(own.code == 1)
        #expect(own.complaint.hasPrefix("belfry dev: the folder /proc/none/belfry-dev-"))
        #expect(own.complaint.contains("; TMPDIR names where, and --folder another place"))
    }

    @Test func `an unknown log level is refused`() async throws {
        let run = try await BuiltBelfry.run(["dev", "--log-level", "loud"])
        #expect(run.code == 64)
        #expect(run.complaint.contains("loud"))
    }
}
