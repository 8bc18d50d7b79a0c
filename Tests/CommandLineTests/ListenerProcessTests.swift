import Foundation
import GatewaySimulator
import RelayModel
import RelayTestKit
import Testing

/// The relay's own commands against a TLS listener, and a relay that may open only few files.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ListenerProcessTests {
    @Test func `commands with the relay's configuration reach it over TLS`() async throws {
        let home = try TemporaryStore()
        let folder = try Folder.make()
        let gateway = try await SampleGateway.start(in: folder)
        let kept = folder.appending(path: "gateway")
        let chain = kept.appending(path: "server.pem").path
        let key = kept.appending(path: "server-key.pem").path
        let relay = try await ServedBelfry.start(
            on: home.path, for: gateway,
            ["--tls-certificate-file": chain, "--tls-private-key-file": key])
        let port = try #require(relay.client.adminURL.split(separator: ":").last)
        func overview(_ chain: String, caFile: String? = nil) async throws -> BuiltBelfry.Ending {
            let file = folder.appending(path: "belfry.json")
            let authority = caFile.map { #", "caFile": "\#($0)""# } ?? ""
            let text = """
                {"admin": {"port": \(port)}, "tls": {
                "certificateFile": "\(chain)", "privateKeyFile": "\(key)"\(authority)}}
                """
            try Data(text.utf8).write(to: file)
            return try await BuiltBelfry.run(
                ["overview", "--config", file.path],
                environment: ["BELFRY_ADMIN_TOKEN": RelayClient.adminToken])
        }
        let verified = try await overview(chain, caFile: kept.appending(path: "ca.pem").path)
        #expect(verified.code == 0, "\(verified.complaint)")
        // The relay's own certificate is trusted without a certificate authority.
        let own = try await overview(chain)
        #expect(own.code == 0, "\(own.complaint)")
        // A certificate of another authority is refused, and so is another certificate.
        let elsewhere = try Folder.make()
        let other = try await SampleGateway.start(in: elsewhere)
        let foreign = elsewhere.appending(path: "gateway/server.pem").path
        // A certificate that was renewed meanwhile is verified by its authority.
        let renewed = try await overview(foreign, caFile: kept.appending(path: "ca.pem").path)
        #expect(renewed.code == 0, "\(renewed.complaint)")
        for caFile in [other.caFile, nil] {
            let refused = try await overview(foreign, caFile: caFile)
            #expect(refused.code == 69, "\(refused.output)")
            #expect(refused.complaint.contains("tls.caFile"), "\(refused.complaint)")
            #expect(!refused.complaint.contains("CERTIFICATE_VERIFY_FAILED"))
        }
        #expect(await relay.end() == 0)
        await gateway.simulated.stop()
        await other.simulated.stop()
    }

    /// Sockets that a test opens without sending anything.
    private final class Crowd {
        private var sockets: [Int32] = []

        /// Opens `count` connections, as far as the relay accepts them or the system queues them.
        init(_ count: Int, port: Int) {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            for _ in 0..<count {
                let socket = socket(
                    AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
                guard socket >= 0 else { continue }
                _ = withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
                sockets.append(socket)
            }
        }

        func leave() {
            for socket in sockets { close(socket) }
            sockets = []
        }
    }

    @Test(arguments: [256, 1024])
    func `more connections than open files neither end the relay nor lock clients out`(
        files: Int
    ) async throws {
        let home = try TemporaryStore()
        let folder = try Folder.make()
        let gateway = try await SampleGateway.start(in: folder)
        let relay = try await ServedBelfry.start(on: home.path, for: gateway, openFiles: files)
        let port = try #require(relay.client.url.split(separator: ":").last.flatMap { Int($0) })
        for round in 0..<3 {
            let crowd = Crowd(files + 200, port: port)
            // The operator's port and the store stay reachable.
            #expect(try await relay.client.administer("GET", "overview").status == 200)
            #expect(
                try await relay.client.administer(
                    "PUT", "containers/iCloud.com.example.Crowd\(round)/development",
                    ["topics": ["com.example.Crowd"]]
                ).status < 300)
            crowd.leave()
            // The relay notices the closed connections one by one.
            while try await relay.client.call("GET", "/healthz").status != 200 {}
        }
        #expect(await relay.end() == 0)
        await gateway.simulated.stop()
    }
}
