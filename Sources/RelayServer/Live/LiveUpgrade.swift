import Crypto
import HTTPTypes
import HummingbirdCore
import Live
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import RelayModel

/// Turns a connection into a WebSocket when its client asks for one (RFC 6455).
///
/// Each connection has its own handler, which passes everything else on.
final class LiveUpgrade: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Tells the task that serves HTTP on a connection that its work is over.
    struct Upgraded: Error {}

    /// The name of the subprotocol.
    static let subprotocol = "belfry.live.v1"

    /// Chooses the sockets for a request; it returns `nil` while the relay stands by.
    private let source: Source
    /// The socket option `TCP_NOTSENT_LOWAT`, which limits the unsent bytes in the system's buffer.
    ///
    /// By default the buffer holds megabytes, and reports nothing until a slow client has taken a
    /// third of them.
    private static let unsent = NIOBSDSocket.Option(rawValue: 25)
    /// Finds the addresses of client and listener in a head; `nil` to use those of the connection.
    private let origin: Origin?
    private var asked: (head: HTTPRequest, sockets: LiveSockets)?
    /// The number of requests whose answers have not been written completely.
    private var unanswered = 0
    /// Whether the upgrade was accepted, so that HTTP input and output are discarded from now on.
    private var isTaken = false
    /// Whether the task that served HTTP is leaving.
    private var isLeft = false

    /// Reads the addresses from the head of a request that another process passes on, and removes
    /// them from the head.
    typealias Origin =
        @Sendable (inout HTTPFields) -> (client: ClientAddress?, own: ClientAddress?)

    /// Returns the sockets for a request; `nil` for none.
    typealias Source = @Sendable (HTTPRequest) -> LiveSockets?

    init(_ source: @escaping Source, origin: Origin? = nil) {
        self.source = source
        self.origin = origin
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isTaken else { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            // While earlier requests wait for their answers, no upgrade is accepted: the answers
            // would be written to a connection without HTTP. The routes refuse the request in its
            // turn.
            guard unanswered == 0, Self.asks(head), let sockets = source(head) else {
                unanswered += 1
                break
            }
            asked = (head, sockets)
            return
        case .body: if asked != nil { return }
        case .end:
            guard let asked else { break }
            answer(asked.head, asked.sockets, context)
            self.asked = nil
            return
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isTaken else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        if case .end = unwrapOutboundIn(data), unanswered > 0 { unanswered -= 1 }
        context.write(data, promise: promise)
    }

    /// Returns whether a request asks for a live connection.
    static func asks(_ head: HTTPRequest) -> Bool {
        guard head.method == .get, head.path?.hasPrefix("/live/1/") == true,
            let upgrade = head.headerFields[.upgrade]
        else { return false }
        return upgrade.lowercased().split(separator: ",")
            .contains { $0.trimmed == "websocket" }
    }

    /// Returns whether a request allows its connection to change protocol (RFC 6455, §4.2.1); a
    /// proxy that does not support WebSockets removes that word.
    static func mayLeave(_ head: HTTPRequest) -> Bool {
        (head.headerFields[.connection] ?? "").split(separator: ",")
            .contains { $0.trimmed == "upgrade" }
    }

    private func answer(
        _ head: HTTPRequest, _ sockets: LiveSockets, _ context: ChannelHandlerContext
    ) {
        var head = head
        let (client, own) =
            origin?(&head.headerFields)
            ?? (
                ClientAddress(context.channel.remoteAddress),
                ClientAddress(context.channel.localAddress)
            )
        let access = sockets.access
        func refuse(_ status: HTTPResponse.Status, _ reason: String) {
            access.refusals.count(status == .serviceUnavailable ? .closing : .upgrade)
            self.refuse(status, reason, access.identifiers, context)
        }
        let key = head.headerFields[.secWebSocketKey] ?? ""
        let protocols = (head.headerFields[.secWebSocketProtocol] ?? "").split(separator: ",")
        guard Self.mayLeave(head) else {
            return refuse(.badRequest, "Connection: must be Upgrade")
        }
        guard Base64.decode(key)?.count == 16 else {
            return refuse(
                .badRequest, "Sec-WebSocket-Key: must be 16 bytes in base64")
        }
        guard head.headerFields[.secWebSocketVersion] == "13" else {
            return refuse(.upgradeRequired, "Sec-WebSocket-Version: must be 13")
        }
        guard protocols.contains(where: { $0.trimmed == Self.subprotocol }) else {
            return refuse(
                .badRequest, "Sec-WebSocket-Protocol: must contain \(Self.subprotocol)")
        }
        guard let place = sockets.request(of: head, from: client, to: own) else {
            return refuse(
                .notFound, "the path must be /live/1/{container}/{environment}")
        }
        guard sockets.isOpen else {
            return refuse(.serviceUnavailable, "the relay is shutting down")
        }
        do throws(APIError) {
            try access.admit(origin: head.headerFields[.origin])
        } catch {
            return self.refuse(.forbidden, error, access.identifiers, context)
        }
        isTaken = true
        var fields = HTTPFields()
        fields[.upgrade] = "websocket"
        fields[.connection] = "Upgrade"
        fields[.secWebSocketAccept] = Self.accept(key)
        fields[.secWebSocketProtocol] = Self.subprotocol
        context.write(
            wrapOutboundOut(
                .head(HTTPResponse(status: .switchingProtocols, headerFields: fields))),
            promise: nil)
        let written = context.eventLoop.makePromise(of: Void.self)
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        written.futureResult.whenSuccess {
            let (handler, context) = here.value
            handler.become(place, sockets, context)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    /// Returns the answer to a key (RFC 6455, §4.2.2).
    static func accept(_ key: String) -> String {
        let text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        return Base64.encode(Array(Insecure.SHA1.hash(data: Array(text.utf8))))
    }

    /// Removes HTTP from the connection, and adds the live client.
    private func become(
        _ request: RelayRequest, _ sockets: LiveSockets, _ context: ChannelHandlerContext
    ) {
        let pipeline = context.pipeline.syncOperations
        let channel = context.channel
        do {
            try channel.syncOptions?.setOption(
                ChannelOptions.writeBufferWaterMark, value: LiveSocket.marks)
            try? channel.syncOptions?.setOption(
                .tcpOption(Self.unsent), value: LiveSocket.marks.low)
            let hub = sockets.hub(of: channel.eventLoop)
            let session = LiveSession(sockets.access, at: hub, head: request)
            let socket = LiveSocket(sockets.access, session, at: hub)
            try HTTPDeparture.replace(pipeline, by: socket)
            sockets.note(channel)
            // The task is the largest part of a connection's memory. This error ends the task,
            // which then closes the connection; `close` below prevents that.
            isLeft = true
            context.fireErrorCaught(Upgraded())
        } catch {
            channel.close(promise: nil)
        }
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        guard isLeft else { return context.close(mode: mode, promise: promise) }
        promise?.succeed()
        // The task first closes its output, and then everything. Later calls are carried out.
        if case .all = mode { context.pipeline.syncOperations.removeHandler(self, promise: nil) }
    }

    private func refuse(
        _ status: HTTPResponse.Status, _ reason: String, _ identifiers: RandomIdentifiers,
        _ context: ChannelHandlerContext
    ) {
        let code: ServerErrorCode = status == .serviceUnavailable ? .tryAgainLater : .badRequest
        refuse(
            status,
            APIError(code, reason, retryAfter: status == .serviceUnavailable ? 1 : nil),
            identifiers, context)
    }

    private func refuse(
        _ status: HTTPResponse.Status, _ error: APIError, _ identifiers: RandomIdentifiers,
        _ context: ChannelHandlerContext
    ) {
        let uuid = identifiers.uuid()
        let body = JSONValue.object(error.json(uuid: uuid)).utf8
        var fields = Self.fields(refusing: error, by: status, uuid: uuid)
        fields[.contentLength] = String(body.count)
        context.write(
            wrapOutboundOut(.head(HTTPResponse(status: status, headerFields: fields))),
            promise: nil)
        context.write(wrapOutboundOut(.body(ByteBuffer(bytes: body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

extension LiveUpgrade {
    /// Returns the header fields of a refusal, except for the length of its body.
    static func fields(
        refusing error: APIError, by status: HTTPResponse.Status, uuid: String
    ) -> HTTPFields {
        var fields = HTTPFields()
        fields[.appleRequestUUID] = uuid
        fields[.contentType] = "application/json; charset=utf-8"
        fields[.connection] = "close"
        if let seconds = error.retryAfter { fields[.retryAfter] = String(seconds) }
        if status == .upgradeRequired {
            fields[.secWebSocketVersion] = "13"
            // RFC 9110, §15.5.22 and §7.8.
            fields[.upgrade] = "websocket"
            fields.append(HTTPField(name: .connection, value: "Upgrade"))
        }
        return fields
    }
}

extension Substring {
    /// The text in lower case, without surrounding spaces and tabs.
    var trimmed: String {
        // By bytes: finding a flag from the end counts all flags before it, and a field may have
        // ten thousand of them.
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let rest = utf8.drop(while: isSpace)
        guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
        return Substring(rest[...last]).lowercased()
    }
}
