import NIOCore
import NIOPosix
import NIOSSL

/// A TLS server that negotiates HTTP/1.1 only.
struct OldServer: Sendable {
    /// The name of the certificate authority's file in the simulator's folder of certificates.
    static let caName = "ca.pem"

    let channel: any Channel

    var port: Int { channel.localAddress?.port ?? 0 }

    /// Starts the server with the certificate that the simulator keeps in `folder`.
    static func start(certificatesIn folder: String) async throws -> OldServer {
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile("\(folder)/server.pem")
                .map { .certificate($0) },
            privateKey: .privateKey(
                try NIOSSLPrivateKey(file: "\(folder)/server-key.pem", format: .pem)))
        tls.applicationProtocols = ["http/1.1"]
        let context = try NIOSSLContext(configuration: tls)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOSSLServerHandler(context: context))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return OldServer(channel: channel)
    }
}
