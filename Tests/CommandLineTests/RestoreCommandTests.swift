import Foundation
import GatewaySimulator
import RelayTestKit
import Testing

/// Copies of a store, and stores restored from copies, as an operator makes them.
@Suite(.timeLimit(.minutes(30))) struct RestoreCommandTests {
    @Test func `a backup is restored under its own name or in place of a store`() async throws {
        let folder = try Folder.make()
        func file(_ name: String) -> String { folder.appending(path: name).path }
        func run(_ arguments: String...) async throws -> BuiltBelfry.Ending {
            try await BuiltBelfry.run(arguments)
        }
        #expect(try await run("migrate", "--database", file("a.sqlite")).code == 0)
        #expect(try await run("backup", file("b"), "--database", file("a.sqlite")).code == 0)
        let refused = try await run("serve", "--storage-path", file("b"), "--http-port", "0")
        #expect(refused.code == 69)
        #expect(refused.complaint.contains("make a store from it with belfry restore"))
        let restored = try await run("restore", file("b"), "--database", file("c.sqlite"))
        #expect(restored.code == 0 && restored.output.contains("sound"), "\(restored.complaint)")
        let taken = try await run("restore", file("b"), "--database", file("a.sqlite"))
        #expect(taken.code == 69 && taken.complaint.contains("--replace moves it aside"))
        let replaced = try await run(
            "restore", file("b"), "--database", file("a.sqlite"), "--replace")
        #expect(replaced.code == 0, "\(replaced.complaint)")
        #expect(FileManager.default.fileExists(atPath: file("a.sqlite-replaced")))
        for name in ["a.sqlite", "b", "c.sqlite"] {
            let check = try await run("check", "--database", file(name))
            #expect(check.code == 0, "\(name): \(check.output)\(check.complaint)")
        }
    }

    @Test func `an empty file is refused as a backup and replaces no store`() async throws {
        let folder = try Folder.make()
        let (store, empty) = (
            folder.appending(path: "a.sqlite").path, folder.appending(path: "empty").path
        )
        try await BuiltBelfry.makeStore(at: store)
        try Data().write(to: URL(filePath: empty))
        let restored = try await BuiltBelfry.run(
            ["restore", empty, "--database", store, "--replace"])
        #expect(restored.code == 69, "\(restored.output)")
        #expect(restored.complaint.contains("it is empty"), "\(restored.complaint)")
        let check = try await BuiltBelfry.run(["check", "--database", store])
        #expect(check.code == 0, "\(check.output)\(check.complaint)")
        let checked = try await BuiltBelfry.run(["check", "--database", empty])
        #expect(checked.code == 69 && checked.complaint.contains("it is empty"))
        let copy = folder.appending(path: "copy").path
        let backup = try await BuiltBelfry.run(["backup", copy, "--database", empty])
        #expect(backup.code == 69 && backup.complaint.contains("it is empty"))
        #expect(!FileManager.default.fileExists(atPath: copy))
    }

    @Test func `continuous backups that are given as a copy are refused with what to write`()
        async throws
    {
        let folder = try Folder.make()
        let store = folder.appending(path: "a.sqlite").path
        let place = "file://" + folder.standardizedFileURL.path
        for more in [[], ["--at", "2026-11-25T20:15:00Z"]] {
            let url = try await BuiltBelfry.run(["restore", place, "--database", store] + more)
            #expect(url.code == 64, "\(url.output)")
            #expect(url.complaint.contains("write --from \(place)"), "\(url.complaint)")
            let path = try await BuiltBelfry.run(
                ["restore", folder.path, "--database", store] + more)
            #expect(path.code == 64, "\(path.output)")
            #expect(path.complaint.contains("is a folder: name a copy in it"), "\(path.complaint)")
            #expect(path.complaint.contains("write --from \(place)"), "\(path.complaint)")
        }
        #expect(!FileManager.default.fileExists(atPath: store))
    }

    @Test func `a relay does not create a missing store by itself`()
        async throws
    {
        let folder = try Folder.make()
        let file = folder.appending(path: "relay.sqlite").path
        let gateway = try await SampleGateway.start(in: folder)
        let never = ServedBelfry.arguments(
            on: file, for: gateway, ["--storage-create": "never"])
        let missing = try await BuiltBelfry.run(never)
        #expect(missing.code == 69 && missing.complaint.contains("there is no store at "))
        let relay = try await ServedBelfry.start(on: file, for: gateway)
        #expect(await relay.end() == 0)
        try FileManager.default.removeItem(atPath: file)
        let lost = try await BuiltBelfry.run(ServedBelfry.arguments(on: file, for: gateway))
        #expect(lost.code == 69 && lost.complaint.contains("it is missing or empty"))
        await gateway.simulated.stop()
    }
}
