import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import RelayServer

@Suite struct TakenChannelTests {
    /// NIO would end the process by a trap.
    @Test func `a connection that nobody takes is closed`() async throws {
        let channel = NIOAsyncTestingChannel()
        let taking = TakenChannel(base: HTTP1Channel(responder: { _, _, _ in }))
        do {
            _ = try await channel.testingEventLoop.executeInContext {
                taking.setup(channel: channel, logger: Logger(label: "test"))
            }.get()
        }
        // It may be closed by now.
        try? await channel.connect(to: SocketAddress(unixDomainSocketPath: "/nowhere"))
        try await channel.closeFuture.get()
    }
}
