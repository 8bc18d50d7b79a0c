import Foundation
import GatewaySimulator
import RelayTestKit
import Testing

/// A process that stands by for the owner of a store on PostgreSQL.
@Suite(
    .serialized, .timeLimit(.minutes(15)),
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct StandbyProcessTests {
    /// Copies the gateway's certificate and key from `other` to where the relay looks for its own.
    private static func install(from other: URL, in folder: URL) throws {
        for (from, to) in [("server.pem", "live.pem"), ("server-key.pem", "live.key")] {
            let target = folder.appending(path: to)
            try? FileManager.default.removeItem(at: target)
            try FileManager.default.copyItem(
                at: other.appending(path: "gateway").appending(path: from), to: target)
        }
    }

    @Test func `a relay that stands by obeys signals and renews its certificate`() async throws {
        let server = try PostgresServer.ofStores()
        let folder = try Folder.make()
        let gateway = try await SampleGateway.start(in: folder)
        let elsewhere = try Folder.make()
        let other = try await SampleGateway.start(in: elsewhere)
        try Self.install(from: folder, in: folder)
        let place = [
            "--storage-url": "postgresql://postgres@/postgres?host=\(server.folder)",
            "--storage-schema": server.schemaName(),
        ]
        let owner = try await ServedBelfry.start(
            on: folder.appending(path: "owner").path, for: gateway, place)
        let standby = try await ServedBelfry.start(
            on: folder.appending(path: "standby").path, for: gateway,
            place.merging([
                "--tls-certificate-file": folder.appending(path: "live.pem").path,
                "--tls-private-key-file": folder.appending(path: "live.key").path,
            ]) { _, given in given })
        try await standby.line(containing: "standing by for the store")
        for (number, name) in [(SIGHUP, "SIGHUP"), (SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2")] {
            standby.signal(number)
            try await standby.line(containing: "signal=\(name)")
        }
        try Self.install(from: elsewhere, in: folder)
        try await standby.line(containing: "the certificate was renewed")
        #expect(await standby.end() == 0)
        #expect(await owner.end() == 0)
        await gateway.simulated.stop()
        await other.simulated.stop()
    }
}
