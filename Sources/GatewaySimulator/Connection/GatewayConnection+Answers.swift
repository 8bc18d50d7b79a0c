import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension GatewayConnection {
    /// Carries out the answer to `push`, unless the stream is no longer open.
    func answer(_ push: ReceivedPush, on id: HTTP2StreamID, isAuthenticated: Bool) {
        guard !isFrozen, streams[id] != nil else { return }
        switch push.answer {
        case .accept:
            respond(to: push, on: id, status: 200)
        case .acceptLimitingStreams(let limit):
            limitState = .scripted
            announce(limit)
            respond(to: push, on: id, status: 200)
        case .refuse(let refusal):
            refuse(push, on: id, with: refusal)
        case .raw(let status, let contentType, let body):
            respond(to: push, on: id, status: status, contentType: contentType, body: body)
        case .silence:
            return
        case .resetStream(let reset):
            streams[id] = nil
            write(.rstStream(reset.errorCode), on: id)
        case .goAway(let wish):
            depart(wish, push: push, on: id)
        case .closeConnection(let end):
            close(end)
        case .freezeConnection:
            freeze()
        }
        if isAuthenticated { updateLimit(after: push) }
        closeIfDrained()
    }

    /// Sends a GOAWAY with `lastStream`, drops the streams above it, and closes the connection if
    /// `wish` says so.
    func goAway(_ wish: GoAway, lastStream: HTTP2StreamID) {
        if let departure, lastStream > departure.lastStream { return }
        var debugData: ByteBuffer?
        if let reason = wish.reason {
            debugData = ByteBuffer(string: "{\"reason\":\(JSONText.quoted(reason))}")
        }
        departure = (lastStream, wish.ending)
        for (id, stream) in streams where id > lastStream {
            streams[id] = nil
            if let push = stream.push { ledger.withdraw(push) }
        }
        write(
            .goAway(
                lastStreamID: lastStream, errorCode: wish.errorCode.networkCode,
                opaqueData: debugData),
            on: .rootStream)
        ledger.count { $0.goAwaysSent += 1 }
        if wish.ending == .close { close(.finish) }
    }

    /// Closes the connection if a GOAWAY announced it and all open streams have been answered.
    func closeIfDrained() {
        guard let departure, departure.ending == .drain, streams.isEmpty else { return }
        close(.finish)
    }

    /// Writes a frame, which goes out with the next flush.
    func write(_ payload: HTTP2Frame.FramePayload, on id: HTTP2StreamID) {
        context?.write(
            wrapOutboundOut(HTTP2Frame(streamID: id, payload: payload)), promise: nil)
    }
}

extension GatewayConnection {
    private func respond(
        to push: ReceivedPush, on id: HTTP2StreamID, status: Int, contentType: String? = nil,
        body: String = "", retryAfter: Int? = nil
    ) {
        streams[id] = nil
        var headers = HPACKHeaders([(":status", String(status)), ("apns-id", push.apnsID)])
        if configuration.environment == .development {
            headers.add(name: "apns-unique-id", value: UUID().uuidString.lowercased())
        }
        if let contentType { headers.add(name: "content-type", value: contentType) }
        if let retryAfter { headers.add(name: "retry-after", value: String(retryAfter)) }
        write(.headers(.init(headers: headers, endStream: body.isEmpty)), on: id)
        if !body.isEmpty {
            write(
                .data(.init(data: .byteBuffer(ByteBuffer(string: body)), endStream: true)), on: id)
        }
        ledger.recordAnswer(to: push)
    }

    private func refuse(
        _ push: ReceivedPush, on id: HTTP2StreamID, with refusal: GatewayRefusal
    ) {
        respond(
            to: push, on: id, status: refusal.status, contentType: "application/json",
            body: refusal.body, retryAfter: refusal.retryAfter)
        guard refusal.status == 403 else { return }
        switch configuration.afterRejection {
        case .keepsStreamLimit: return
        case .shrinksStreamLimit: break
        case .shrinksStreamLimitAndRefusesOpenStreams:
            for (id, stream) in streams {
                streams[id] = nil
                if let push = stream.push { ledger.withdraw(push) }
                write(.rstStream(.refusedStream), on: id)
            }
        }
        limitState = .shrunk
        announce(1)
    }

    /// Raises the stream limit after the first push with a valid provider token.
    ///
    /// After a refusal has shrunk the limit, raises it again after the next accepted push.
    private func updateLimit(after push: ReceivedPush) {
        switch (limitState, push.answer) {
        case (.initial, _), (.shrunk, .accept):
            limitState = .full
            announce(configuration.streamLimit)
        default: break
        }
    }

    private func announce(_ limit: Int) {
        guard limit != self.limit else { return }
        self.limit = limit
        unacknowledgedSettings += 1
        write(.settings(.settings([StreamLimitTap.concealed(limit)])), on: .rootStream)
    }

    private func depart(_ wish: GoAway, push: ReceivedPush, on id: HTTP2StreamID) {
        switch wish.lastStream {
        case .highest:
            goAway(wish, lastStream: highestStream)
            if wish.ending != .close { respond(to: push, on: id, status: 200) }
        case .beforeThis:
            streams[id] = nil
            goAway(wish, lastStream: HTTP2StreamID(max(0, Int(id) - 2)))
        }
    }

    private func close(_ end: ConnectionEnd) {
        streams.removeAll()
        context?.flush()
        switch end {
        case .finish: context?.close(promise: nil)
        case .reset: reset()
        }
    }

    /// Closes the socket with RST instead of FIN, below TLS, which would send close_notify.
    private func reset() {
        guard let context else { return }
        let socket = context.channel as? any SocketOptionProvider
        _ = socket?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
        let tls = try? context.pipeline.syncOperations.context(
            handlerType: NIOSSLServerHandler.self)
        (tls ?? context).close(promise: nil)
    }

    private func freeze() {
        isFrozen = true
        guard let channel = context?.channel else { return }
        _ = channel.setOption(.autoRead, value: false)
    }
}

extension StreamReset {
    /// The HTTP/2 error code of the frame (RFC 9113 §7).
    var errorCode: HTTP2ErrorCode {
        switch self {
        case .refused: .refusedStream
        case .cancelled: .cancel
        case .internalError: .internalError
        }
    }
}

extension GoAway.ErrorCode {
    /// The HTTP/2 error code of the frame (RFC 9113 §7).
    var networkCode: HTTP2ErrorCode {
        switch self {
        case .noError: .noError
        case .internalError: .internalError
        case .enhanceYourCalm: .enhanceYourCalm
        }
    }
}
