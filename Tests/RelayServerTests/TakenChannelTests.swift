import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import RelayServer

@Suite struct TakenChannelTests {
    /// Otherwise NIO would trap and end the process.
    @Test func `a connection that was not accepted is closed`() async throws {
        let channel = NIOAsyncTestingChannel()
        let taking = TakenChannel(base: HTTP1Channel(responder: { _, _, _ in }))
        do {
            _ = try await channel.testingEventLoop.executeInContext {
                taking.setup(channel: channel, logger: Logger(label: "test"))
            }.get()
        }
        // The channel may be closed already.
        try? await channel.connect(to: SocketAddress(unixDomainSocketPath: "/nowhere"))
        try await channel.closeFuture.get()
    }
}
