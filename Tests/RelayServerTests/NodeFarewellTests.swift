import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import RelayServer

/// How a connection from another relay ends, without a socket.
@Suite struct NodeFarewellTests {
    /// Counts how often the handlers behind are told of the end.
    private final class Ends: ChannelInboundHandler {
        typealias InboundIn = HTTPRequestPart
        typealias InboundOut = HTTPRequestPart

        var count = 0

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if event is ChannelShouldQuiesceEvent { count += 1 }
        }
    }

    private let calls = NodeCalls()
    private let ends = Ends()
    private let channel: EmbeddedChannel

    init() throws {
        channel = EmbeddedChannel(handlers: [NodeFarewell(calls), ends])
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
    }

    private func come() throws {
        let head = HTTPRequest(method: .post, scheme: nil, authority: "h", path: "/x")
        try channel.writeInbound(HTTPRequestPart.head(head))
        try channel.writeInbound(HTTPRequestPart.end(nil))
    }

    private func hasCome() throws -> Bool {
        try channel.readInbound(as: HTTPRequestPart.self) != nil
    }

    private func end() {
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    private func begin() throws {
        try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
    }

    private func finish() throws { try channel.writeOutbound(HTTPResponsePart.end(nil)) }

    /// Returns the next outgoing part, if it is the head of a response.
    private func head() throws -> HTTPResponse? {
        guard case .head(let head)? = try channel.readOutbound(as: HTTPResponsePart.self) else {
            return nil
        }
        return head
    }

    private func isOver() throws -> Bool {
        guard case .end? = try channel.readOutbound(as: HTTPResponsePart.self) else { return false }
        return true
    }

    @Test func `without an open call the other relay learns that none is accepted`() throws {
        end()
        let told = try head()
        #expect(told?.status.kind == .informational)
        #expect(told?.headerFields[.nodeDeclined] != nil)
        #expect(ends.count == 0)
        // A call that was on its way is not processed.
        try come()
        let came = try hasCome()
        #expect(!came && !calls.isAny)
        // An older relay waits for a response.
        let answer = try head()
        #expect(answer?.status == .misdirectedRequest)
        #expect(answer?.headerFields[.nodeDeclined] != nil)
        #expect(answer?.headerFields[.connection] == "close")
        let wasOver = try isOver()
        #expect(wasOver)
        channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(ends.count == 1)
        _ = try channel.finish()
    }

    @Test func `a response that begins after the end says that it is the last`() throws {
        try come()
        end()
        #expect(ends.count == 1 && calls.isAny)
        try begin()
        try finish()
        let answer = try head()
        #expect(answer?.status == .ok && answer?.headerFields[.connection] == "close")
        let wasOver = try isOver()
        let more = try head()
        #expect(wasOver && more == nil && !calls.isAny)
        _ = try channel.finish()
    }

    /// The head of the response let the other relay keep the connection, and its next call may
    /// cross with the end.
    @Test func `a response that began before the end is followed by a refusal of further calls`()
        throws
    {
        try come()
        try begin()
        end()
        try finish()
        let answer = try head()
        #expect(answer?.status == .ok && answer?.headerFields[.connection] == nil)
        let wasOver = try isOver()
        let told = try head()
        #expect(wasOver && told?.headerFields[.nodeDeclined] != nil)
        while try hasCome() {}
        try come()
        let came = try hasCome()
        #expect(!came)
        _ = try channel.finish()
    }

    /// A connection may be made, and a call arrive on it, while its listener ends.
    @Test func `a call on a connection that was not accepted is declined`() throws {
        try come()
        channel.pipeline.fireUserInboundEventTriggered(TakenConnection.Dropped())
        let told = try head()
        #expect(told?.status.kind == .informational)
        #expect(told?.headerFields[.nodeDeclined] != nil)
        _ = try channel.finish(acceptAlreadyClosed: true)
        #expect(!calls.isAny)
    }

    @Test func `an upgraded connection is sent nothing`() throws {
        try come()
        try channel.writeOutbound(
            HTTPResponsePart.head(HTTPResponse(status: .switchingProtocols)))
        try finish()
        end()
        let answer = try head()
        #expect(answer?.status == .switchingProtocols)
        let wasOver = try isOver()
        let more = try head()
        #expect(wasOver && more == nil)
        _ = try channel.finish()
    }
}
