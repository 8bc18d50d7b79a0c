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
/// One for each connection; everything else passes.
final class LiveUpgrade: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// Tells the task that serves HTTP on a connection that it has nothing more to serve.
    struct Upgraded: Error {}

    /// What clients name the protocol.
    static let subprotocol = "belfry.live.v1"

    /// Where a request's live client goes; `nil` as long as the relay stands by.
    private let source: Source
    /// What the system may keep of what it cannot send yet (`TCP_NOTSENT_LOWAT`): it may keep
    /// megabytes, and says nothing of what a slow client takes before that is a third of them.
    private static let unsent = NIOBSDSocket.Option(rawValue: 25)
    /// Who a client is, and which address it reached; `nil` for what the connection says.
    private let origin: Origin?
    private var asked: (head: HTTPRequest, sockets: LiveSockets)?
    /// Requests of the routes whose answers are not written wholly.
    private var unanswered = 0
    /// Whether HTTP has said its last, so that what it still reads is nobody's.
    private var isTaken = false
    /// Whether the task that served HTTP is leaving.
    private var isLeft = false

    /// Reads from the head of a request where it comes from, if a connection is not its client's,
    /// and takes that out of it.
    typealias Origin =
        @Sendable (inout HTTPFields) -> (client: ClientAddress?, own: ClientAddress?)

    /// Says where the live client of a request goes; `nil` for nowhere.
    typealias Source = @Sendable (HTTPRequest) -> LiveSockets?

    init(_ source: @escaping Source, origin: Origin? = nil) {
        self.source = source
        self.origin = origin
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isTaken else { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            // Behind requests that wait for their answers nothing is taken: those would be written
            // to a connection that has no HTTP any more. The routes refuse it, in its turn.
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

    /// Whether a request wants a live connection.
    static func asks(_ head: HTTPRequest) -> Bool {
        guard head.method == .get, head.path?.hasPrefix("/live/1/") == true,
            let upgrade = head.headerFields[.upgrade]
        else { return false }
        return upgrade.lowercased().split(separator: ",")
            .contains { $0.trimmed == "websocket" }
    }

    /// Whether the connection that brings a request may become another protocol's (RFC 6455,
    /// §4.2.1): a proxy that does not pass WebSockets on takes that word out.
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
            return refuse(.badRequest, "Connection: Upgrade is expected")
        }
        guard Base64.decode(key)?.count == 16 else {
            return refuse(
                .badRequest, "Sec-WebSocket-Key: 16 bytes in base64 are expected")
        }
        guard head.headerFields[.secWebSocketVersion] == "13" else {
            return refuse(.upgradeRequired, "Sec-WebSocket-Version: 13 is expected")
        }
        guard protocols.contains(where: { $0.trimmed == Self.subprotocol }) else {
            return refuse(
                .badRequest, "Sec-WebSocket-Protocol: \(Self.subprotocol) is expected")
        }
        guard let place = sockets.request(of: head, from: client, to: own) else {
            return refuse(
                .notFound, "the path is /live/1/{container}/{environment}")
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

    /// The answer to a key (RFC 6455, §4.2.2).
    static func accept(_ key: String) -> String {
        let text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        return Base64.encode(Array(Insecure.SHA1.hash(data: Array(text.utf8))))
    }

    /// Takes HTTP off the connection, and puts the live client on it.
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
            // The task is the largest part of what a connection takes. It ends with an error, and
            // closes the connection as it goes, which `close` keeps from happening.
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
        // First it ends what it would have written, then all; whoever closes after it means it.
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
    /// The header fields of a refusal, but for the length of its body.
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
    /// In small letters, without the spaces and tabs around it.
    var trimmed: String {
        // By bytes: from behind a flag is found by counting all flags before it, and a field may
        // have ten thousand.
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let rest = utf8.drop(while: isSpace)
        guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
        return Substring(rest[...last]).lowercased()
    }
}
