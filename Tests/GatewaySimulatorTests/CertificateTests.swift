import Foundation
import GatewaySimulator
import Testing

@Suite(.timeLimit(.minutes(30))) struct CertificateTests {
    private func withFolder(_ body: (URL) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("gateway-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try await body(folder)
    }

    @Test func `a sender that trusts the authority can connect by name and by address`()
        async throws
    {
        try await SimulatedGateway.run { gateway in
            for host in ["localhost", "127.0.0.1"] {
                let sender = try await TestSender.connect(to: gateway, host: host)
                let outcome = await sender.send(TestPush())
                #expect(outcome.summary == "200")
            }
        }
    }

    @Test func `a sender that trusts another gateway's authority cannot connect`() async throws {
        try await SimulatedGateway.run { gateway in
            try await SimulatedGateway.run { other in
                let sender = try await TestSender.connect(
                    to: gateway, trusting: other.caCertificatePEM)
                let outcome = await sender.send(TestPush())
                #expect(outcome == .lost)
                #expect(gateway.totals.received == 0)
            }
        }
    }

    @Test func `the authority is written where the caller wants it`() async throws {
        try await withFolder { folder in
            let file = folder.appendingPathComponent("deep/ca.pem")
            try await SimulatedGateway.run {
                $0.caFile = file.path
            } _: { gateway in
                let text = try String(contentsOf: file, encoding: .utf8)
                #expect(text == gateway.caCertificatePEM)
                #expect(text.hasPrefix("-----BEGIN CERTIFICATE-----\n"))
            }
        }
    }

    @Test func `stored certificates are used until they are old or of another host`()
        async throws
    {
        try await withFolder { folder in
            func authority(hours: Int, host: String = "127.0.0.1") async throws -> String {
                var configuration = SimulatedGateway.Configuration()
                configuration.certificates = .kept(folder: folder.path)
                configuration.certificateLifetime = .seconds(hours * 3600)
                configuration.host = host
                let gateway = try await SimulatedGateway.start(configuration)
                await gateway.stop()
                return gateway.caCertificatePEM
            }
            let short = try await authority(hours: 23)
            let long = try await authority(hours: 25)
            #expect(long != short)
            #expect(try await authority(hours: 25) == long)
            #expect(try await authority(hours: 25, host: "localhost") == long)
            #expect(try await authority(hours: 25, host: "127.0.0.2") != long)
            let key = folder.appendingPathComponent("server-key.pem").path
            let attributes = try FileManager.default.attributesOfItem(atPath: key)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test func `a damaged folder is created again`() async throws {
        try await withFolder { folder in
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data("x".utf8).write(to: folder.appendingPathComponent("server-key.pem"))
            try await SimulatedGateway.run {
                $0.certificates = .kept(folder: folder.path)
            } _: { gateway in
                let kept = try String(
                    contentsOf: folder.appendingPathComponent("ca.pem"), encoding: .utf8)
                #expect(kept == gateway.caCertificatePEM)
            }
        }
    }

    @Test func `an address that is taken is an error`() async throws {
        try await SimulatedGateway.run { gateway in
            var configuration = SimulatedGateway.Configuration()
            configuration.port = gateway.port
            await #expect(throws: (any Error).self) {
                try await SimulatedGateway.start(configuration)
            }
        }
    }
}
