import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import RelayModel
import RelayTestKit
import StoragePostgreSQL
import Testing

@testable import RelayServer

/// How the requests of one connection are read and forwarded, without a socket.
@Suite struct ForwarderTests {
    /// Counts the attempts to read from the client.
    private final class Reads: ChannelOutboundHandler {
        typealias OutboundIn = Any
        typealias OutboundOut = Any

        var count = 0

        func read(context: ChannelHandlerContext) {
            count += 1
            context.read()
        }
    }

    private let current = CurrentAnswerer()
    private let reads = Reads()
    private let channel: EmbeddedChannel

    init() throws {
        let forwarding = CallForwarding(
            current, patience: .seconds(10), silence: .seconds(60),
            identifiers: RandomIdentifiers { World.real.randomBytes($0) },
            meter: ForwardingMeter(PrometheusMetrics()))
        channel = EmbeddedChannel(
            handlers: [reads, CallForwarder(forwarding, listener: "http")])
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
    }

    private func come(_ path: String) throws {
        let head = HTTPRequest(method: .get, scheme: nil, authority: "h", path: path)
        try channel.writeInbound(HTTPRequestPart.head(head))
        try channel.writeInbound(HTTPRequestPart.end(nil))
    }

    /// Returns how many reads an attempt to read causes.
    private func readings() -> Int {
        let before = reads.count
        channel.read()
        return reads.count - before
    }

    @Test func `the next request is read only after the previous ones are processed`() throws {
        // The relay's own answer, which the client has not read yet.
        try come("/healthz")
        #expect(readings() == 1)
        try come("/x")
        #expect(readings() == 0)
        try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
        try channel.writeOutbound(HTTPResponsePart.end(nil))
        // The request's turn has come, and the store has no owner.
        #expect(readings() == 0)
        let before = reads.count
        current.post(.here)
        channel.embeddedEventLoop.run()
        #expect(reads.count == before + 1)
        for path in ["/healthz", "/x"] {
            guard case .head(let head)? = try channel.readInbound(as: HTTPRequestPart.self),
                case .end? = try channel.readInbound(as: HTTPRequestPart.self)
            else {
                Issue.record("\(path) is missing")
                return
            }
            #expect(head.path == path)
        }
        #expect(readings() == 1)
        _ = try channel.finish()
    }

    /// A poll at a courier would take notifications for a client that has gone.
    @Test(arguments: [("/courier/1/secret", true), ("/x", false)])
    func `a half-closed client is waited for, but not at a courier`(
        path: String, ends: Bool
    ) throws {
        try come(path)
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        channel.embeddedEventLoop.run()
        #expect(channel.isActive != ends)
        channel.embeddedEventLoop.advanceTime(by: .seconds(3))
        #expect(!channel.isActive)
        _ = try? channel.finish()
    }

    @Test func `a waiting call is refused after its time`() throws {
        try come("/x")
        channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(try channel.readOutbound(as: HTTPResponsePart.self) == nil)
        channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        guard case .head(let head)? = try channel.readOutbound(as: HTTPResponsePart.self) else {
            Issue.record("nothing is answered")
            return
        }
        #expect(head.status == .serviceUnavailable)
        #expect(head.headerFields[.retryAfter] == "1")
        _ = try channel.finish()
    }

    /// After a failover to a server that lacks a takeover, its epoch is used again.
    @Test func `another owner with the same epoch is another owner`() throws {
        let pass = try NodePass { World.real.randomBytes($0) }.text
        for (name, port) in [("one", 1), ("two", 1), ("two", 2)] {
            let owner = StoreOwner(
                name: name, epoch: 7,
                endpoint: StoreEndpoint(address: "127.0.0.1:\(port)", pass: pass))
            current.note(owner)
            guard case .owner(let route) = current.answerer else {
                Issue.record("nobody is asked")
                return
            }
            #expect(route.owner == owner && route.address.port == port)
        }
    }

    // MARK: Several shards

    private static func key(_ name: String) -> ContainerKey {
        ContainerKey(container: Fixtures.identifier(name), environment: .development)
    }

    /// Returns a directory of two shards, the first of which is the relay's own.
    private static func directory() -> ShardDirectory {
        ShardDirectory(
            own: "a", schemas: ["a", "b"], clock: ContinuousClock(),
            logger: .silent,
            metrics: PrometheusMetrics()
        ) {
            CallForwarding(
                $1, patience: .seconds(5), silence: .seconds(60),
                identifiers: RandomIdentifiers { World.real.randomBytes($0) },
                meter: ForwardingMeter(PrometheusMetrics()), shard: $0)
        }
    }

    private func connection(
        _ directory: ShardDirectory, by listener: String = "http", isOperators: Bool = false
    ) throws -> EmbeddedChannel {
        let forwarding = CallForwarding(
            current, patience: .seconds(10), silence: .seconds(60),
            identifiers: RandomIdentifiers { World.real.randomBytes($0) },
            meter: ForwardingMeter(PrometheusMetrics()))
        let channel = EmbeddedChannel(
            handlers: [
                CallForwarder(
                    forwarding, listener: listener, shards: directory, isOperators: isOperators)
            ])
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        return channel
    }

    private static func come(_ name: String, to channel: EmbeddedChannel) throws {
        let head = HTTPRequest(
            method: .get, scheme: nil, authority: "h", path: "/changes/1/\(name)/development/s")
        try channel.writeInbound(HTTPRequestPart.head(head))
        try channel.writeInbound(HTTPRequestPart.end(nil))
    }

    @Test func `a shard that was moved into another needs no owner`() {
        let directory = Self.directory()
        let owner = StoreOwner(name: "move", epoch: 3, endpoint: nil)
        let away = ShardSight(
            schema: "b", state: .owned(owner), containers: [Self.key("x")], isMovedAway: true,
            revision: 1)
        let own = ShardSight(schema: "a", state: .unowned, containers: [], revision: 1)
        directory.note([own, away])
        let before = directory.standings[1]
        #expect(before.state == "movedAway" && before.owner == nil && before.containers == 1)
        #expect(before.obstacle?.contains("belfry move") == true)
        directory.note([
            ShardSight(schema: "a", state: .unowned, containers: [Self.key("x")], revision: 2)
        ])
        let after = directory.standings[1]
        #expect(after.state == "movedAway" && after.obstacle == nil && after.containers == 0)
    }

    @Test func `a container's shard is unknown until all shards were read`() throws {
        let directory = Self.directory()
        directory.note([
            ShardSight(schema: "a", state: .unowned, containers: [Self.key("own")], revision: 1)
        ])
        current.post(.here)
        let (known, unknown) = (try connection(directory), try connection(directory))
        try Self.come("own", to: known)
        #expect(try known.readInbound(as: HTTPRequestPart.self) != nil)
        try Self.come("x", to: unknown)
        #expect(try unknown.readInbound(as: HTTPRequestPart.self) == nil)
        // The shard was seen, but was locked, and was read later. No shard has the container.
        directory.note([
            ShardSight(
                schema: "b", state: .unreadable("why"), containers: [], isRead: false, revision: 1)
        ])
        unknown.embeddedEventLoop.run()
        #expect(try unknown.readInbound(as: HTTPRequestPart.self) == nil)
        directory.note([ShardSight(schema: "b", state: .unowned, containers: [], revision: 2)])
        unknown.embeddedEventLoop.run()
        guard case .head(let head)? = try unknown.readInbound(as: HTTPRequestPart.self) else {
            Issue.record("nothing comes to the routes")
            return
        }
        #expect(head.path == "/changes/1/x/development/s")
        for channel in [known, unknown] { _ = try channel.finish() }
    }

    @Test func `a call for a possibly unread shard is refused in time`() throws {
        let directory = Self.directory()
        directory.note([
            ShardSight(
                schema: "b", state: .otherVersion, containers: [], isRead: false, revision: 1)
        ])
        current.post(.here)
        let channel = try connection(directory)
        try Self.come("x", to: channel)
        channel.embeddedEventLoop.advanceTime(by: .seconds(6))
        guard case .head(let answer)? = try channel.readOutbound(as: HTTPResponsePart.self) else {
            Issue.record("nothing is answered")
            return
        }
        #expect(answer.status == .serviceUnavailable)
        _ = try channel.finish()
    }

    @Test(arguments: ["http", "admin"])
    func `why a shard cannot be reached is told only to operators`(listener: String) throws {
        let directory = Self.directory()
        directory.note([
            ShardSight(
                schema: "b", state: .unreadable("why"), containers: [Self.key("there")],
                revision: 1)
        ])
        current.post(.here)
        let channel = try connection(directory, by: listener, isOperators: true)
        var head = HTTPRequest(
            method: .get, scheme: nil, authority: "h",
            path: "/admin/1/containers/there/development")
        head.headerFields[.authorization] = "Bearer x"
        try channel.writeInbound(HTTPRequestPart.head(head))
        try channel.writeInbound(HTTPRequestPart.end(nil))
        channel.embeddedEventLoop.advanceTime(by: .seconds(6))
        guard case .head(let answer)? = try channel.readOutbound(as: HTTPResponsePart.self),
            case .body(let body)? = try channel.readOutbound(as: HTTPResponsePart.self)
        else {
            Issue.record("nothing is answered")
            return
        }
        #expect(answer.status == .serviceUnavailable)
        let reason = String(buffer: body)
        #expect(reason.contains("why") == (listener == "admin"), "\(reason)")
        _ = try channel.finish()
    }

    @Test func `a call for another shard goes there whoever owns the local store`() throws {
        let directory = Self.directory()
        directory.note([
            ShardSight(schema: "b", state: .unowned, containers: [Self.key("there")], revision: 1)
        ])
        let channel = try connection(directory)
        current.post(.here)
        for name in ["here", "there"] { try Self.come(name, to: channel) }
        guard case .head(let head)? = try channel.readInbound(as: HTTPRequestPart.self) else {
            Issue.record("nothing comes to the routes")
            return
        }
        #expect(head.path == "/changes/1/here/development/s")
        _ = try channel.readInbound(as: HTTPRequestPart.self)
        #expect(try channel.readInbound(as: HTTPRequestPart.self) == nil)
        // Answers keep their order: the other call waits for this one, and then for an owner.
        try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
        try channel.writeOutbound(HTTPResponsePart.end(nil))
        _ = try channel.readOutbound(as: HTTPResponsePart.self)
        _ = try channel.readOutbound(as: HTTPResponsePart.self)
        channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(try channel.readOutbound(as: HTTPResponsePart.self) == nil)
        channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        guard case .head(let answer)? = try channel.readOutbound(as: HTTPResponsePart.self) else {
            Issue.record("nothing is answered")
            return
        }
        #expect(answer.status == .serviceUnavailable)
        _ = try channel.finish()
    }
}
