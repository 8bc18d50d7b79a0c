import ChangeSources
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import RelayModel
import Storage

/// Turns requests into values, and answers into responses; this is the only place that does so.
///
/// It reads the body within its limit, gives each request its UUID, maps errors, and adds the
/// header fields that every answer has.
struct RequestHandler: Sendable {
    let turnstile: Turnstile
    /// The proxies that may say for which client they forward a request.
    let proxies: TrustedProxies
    let limits: RequestLimits
    let meter: RequestMeter
    let accessLog: AccessLog
    let refusals = RefusalLog()
    let now: @Sendable () -> Timestamp
    let identifiers: RandomIdentifiers
    /// Whether clients call here, and so web pages; a page may do nothing on the operators' own
    /// port, whatever the path.
    var servesPages = true

    /// Answers one request; `place` is `nil` if no path matched.
    func answer(
        _ request: Request, context: RelayContext, route: RelayRoute?, place: RelayPlace?
    ) async -> Response {
        let uuid = identifiers.uuid()
        let began = now()
        let goOn = ContinueSignal(of: request, on: context.channel)
        let peer = peer(of: request, context)
        var held = HeldBody()
        var answer: RelayAnswer
        do {
            answer = try await attempt(
                request, context: context, goOn, route: route, place: place, uuid: uuid,
                peer: peer, &held)
        } catch {
            if AuthenticationRefusal.isBehind(error) { turnstile.noteRefused(peer) }
            answer = refusal(error, uuid: uuid, logger: context.logger)
        }
        if route?.patience == .held && context.isConnected || goOn.isAwaited {
            // Watching for the client's departure reads ahead on the connection, which cannot serve
            // another request afterwards, not even after a refusal. The same holds if the client
            // may or may not send a body.
            answer.headers[.connection] = "close"
        }
        turnstile.giveMemory(held.bytes, of: held.container)
        // A body that is not read is not waited for, unless it is short.
        if !held.isWhole, Self.isLong(request) { answer.headers[.connection] = "close" }
        let ended = now()
        let duration = ended.duration(since: began)
        meter.record(
            answer.status, method: request.method.rawValue, path: place?.path ?? "unknown",
            duration)
        accessLog.write(
            AccessLog.Entry(
                method: request.method.rawValue,
                path: AccessLog.path(place, place?.parameters(of: context) ?? [:]),
                status: answer.status, bytes: answer.stream == nil ? answer.body.count : nil,
                duration: duration, address: peer?.client, request: uuid,
                container: held.container, who: held.who), status: answer.status, at: ended)
        var fields = Self.commonFields(
            uuid: uuid, pages: pages(of: place), origin: request.headers[.origin])
        // An answer's own cache control has precedence.
        if answer.headers[.cacheControl] != nil { fields[.cacheControl] = nil }
        answer.headers.append(contentsOf: fields)
        var departure: ClientDeparture?
        if answer.stream != nil { departure = try? await ClientWatch.departure(of: context) }
        return Self.response(answer, to: request.method, of: departure)
    }

    private func attempt(
        _ request: Request, context: RelayContext, _ goOn: ContinueSignal, route: RelayRoute?,
        place: RelayPlace?, uuid: String, peer: Peer?, _ held: inout HeldBody
    ) async throws -> RelayAnswer {
        if place?.pages != RelayRoute.Pages.none { try turnstile.arrive(peer) }
        guard let place else {
            throw UnknownPath(path: String(request.uri.path.prefix(200)))
        }
        if request.method == .options,
            route == nil || request.headers[.webHookRequestOrigin] == nil
        {
            return preflight(
                place, asked: request.headers[.accessControlRequestHeaders])
        }
        var call = RelayRequest(
            method: request.method.rawValue, target: request.head.path ?? "",
            headers: request.headers,
            parameters: place.parameters(of: context),
            uuid: uuid, receivedAt: now())
        call.authority = request.head.authority
        call.peer = peer
        guard let route else {
            let refused = RefusedMethod(method: call.method, allowed: place.allowed)
            throw await place.refuse?(call, refused) ?? refused
        }
        let respond: RelayRoute.Respond
        switch route.entrance {
        case .open(let answer): respond = answer
        case .guarded(let admit):
            let admission = try await admit(call)
            held.container = admission.container?.key
            held.who = admission.who
            do {
                if let container = admission.container, let key = admission.key {
                    try turnstile.use(key: key, of: container)
                }
                if let maximum = maximumBody(of: route) {
                    call.body = try await readBody(
                        request, goOn, maximum: min(maximum, admission.maximumBody ?? maximum),
                        &held)
                } else {
                    goOn.send()
                    call.upload = UploadedLines(
                        parts: request.body, longestLine: limits.webhookBytes)
                }
            } catch {
                admission.noteRefusal?(error)
                throw error
            }
            // Reading the body took time: signatures and tokens are judged as of now.
            call.receivedAt = now()
            respond = admission.respond
        }
        guard context.isConnected else { return try await respond(call) }
        switch route.patience {
        case .prompt: return try await respond(call)
        case .held: return try await hold(call, request, context, respond)
        case .watched:
            let departure = try await ClientWatch.departure(of: context)
            return try await departure.ending { [call] in try await respond(call) }
        }
    }

    /// Returns the other end of the connection.
    private func peer(of request: Request, _ context: RelayContext) -> Peer? {
        context.addresses.map { peer, own in
            proxies.peer(
                at: peer, reached: own, forwardedFor: request.headers[values: .forwardedFor])
        }
    }

    /// Answers while watching whether the client is still connected; if it goes, the task is
    /// cancelled.
    ///
    /// - Throws: The error 499 for a client that has gone; what `respond` throws.
    private func hold(
        _ call: RelayRequest, _ request: Request, _ context: RelayContext,
        _ respond: @escaping RelayRoute.Respond
    ) async throws -> RelayAnswer {
        let departure = try await ClientWatch.departure(of: context)
        do {
            return try await request.body.consumeWithCancellationOnInboundClose { _ in
                try await respond(call)
            }
        } catch let error as CancellationError {
            // A connection that was closed earlier has no watch any more.
            let hasGone = departure.isClients || context.channel?.isActive == false
            if hasGone { throw ClientDeparture.gone }
            throw error
        }
    }

    /// The memory that one body takes, and the container that it counts for.
    private struct HeldBody {
        var container: ContainerKey?
        var who: String?
        var bytes = 0
        var isWhole = false
    }

    /// Returns the limit of a body in bytes; `nil` if it is read while it arrives.
    ///
    /// The configured limits are for clients and change sources. An operator may need to send
    /// schemas and certificates even if they are small.
    private func maximumBody(of route: RelayRoute) -> Int? {
        let isOperators = route.surface == .administration
        switch route.bodyLimit {
        case .request: return isOperators ? Limits.maximumRequestBytes : limits.requestBytes
        case .webhook: return isOperators ? Limits.maximumWebhookBytes : limits.webhookBytes
        case .lines: return nil
        }
    }

    /// Returns whether the announced body is longer than what a client has sent by now anyway.
    private static func isLong(_ request: Request) -> Bool {
        if request.headers[.transferEncoding] != nil { return true }
        return request.headers[.contentLength].flatMap { Int($0) } ?? 0 > BodyBudget.portion
    }

    /// Reads the body, and stops as soon as it is too large.
    private func readBody(
        _ request: Request, _ goOn: ContinueSignal, maximum: Int, _ held: inout HeldBody
    ) async throws -> [UInt8] {
        let tooLarge = APIError(.quotaExceeded, "the body is larger than \(maximum) bytes")
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > maximum {
            throw tooLarge
        }
        goOn.send()
        var bytes: [UInt8] = []
        do {
            for try await part in request.body {
                let count = bytes.count + part.readableBytes
                guard count <= maximum else { throw tooLarge }
                if count > held.bytes {
                    try await turnstile.takeMemory(
                        count - held.bytes, for: held.container,
                        isBeginning: count <= BodyBudget.portion)
                    held.bytes = count
                }
                bytes.append(contentsOf: part.readableBytesView)
            }
        } catch  where !(error is APIError || error is CancellationError) {
            // The client went, or violates HTTP; this is not a failure of the relay.
            throw APIError(.badRequest, "the body was cut off")
        }
        held.isWhole = true
        return bytes
    }

    private func refusal(_ error: any Error, uuid: String, logger: Logger) -> RelayAnswer {
        let mapped = ErrorMapping(error)
        refusals.write(mapped, uuid: uuid, at: now(), to: logger)
        var answer = RelayAnswer(mapped.apiError, uuid: uuid)
        answer.headers.append(contentsOf: mapped.headers)
        return answer
    }

    // MARK: The form of requests and answers

    /// Returns the fields of every answer, including those that let a page of another origin read
    /// it.
    ///
    /// The page's origin is named, because a browser that sent credentials cannot read an answer
    /// under `*`. This admits no one, because these calls use no cookies. It is never done for
    /// operators' calls, because the console uses a cookie.
    private static func commonFields(
        uuid: String, pages: RelayRoute.Pages, origin: String?
    ) -> HTTPFields {
        var fields = HTTPFields()
        fields[.appleRequestUUID] = uuid
        fields[.cacheControl] = "no-store"
        guard pages != .none else { return fields }
        fields[.accessControlAllowOrigin] = "*"
        if pages == .named, let origin {
            fields[.accessControlAllowOrigin] = origin
            fields[.accessControlAllowCredentials] = "true"
            fields[.vary] = "Origin"
        }
        fields[.accessControlExposeHeaders] =
            "X-Apple-Request-UUID, X-Apple-CloudKit-Web-Auth-Token, X-Apple-CloudKit-Session, "
            + "Retry-After"
        return fields
    }

    /// Returns what pages of other origins may do with the answers of a place; `nil` if no path
    /// matched.
    private func pages(of place: RelayPlace?) -> RelayRoute.Pages {
        guard servesPages else { return .none }
        return place?.pages ?? .anybody
    }

    private func preflight(_ place: RelayPlace, asked: String?) -> RelayAnswer {
        var answer = RelayAnswer(status: 204)
        guard pages(of: place) != .none else {
            answer.headers[.allow] = place.allowed
            return answer
        }
        answer.headers[.accessControlAllowMethods] = place.allowed
        // Fields that a client's library adds are ignored, and must not prevent the call.
        answer.headers[.accessControlAllowHeaders] =
            asked.flatMap { $0.utf8.count <= 1024 ? $0 : nil }
            ?? "Content-Type, Authorization, ckAPIToken, X-Belfry-User, X-Belfry-Device, "
            + "X-Apple-CloudKit-Request-KeyID, X-Apple-CloudKit-Request-ISO8601Date, "
            + "X-Apple-CloudKit-Request-SignatureV1"
        answer.headers[.accessControlMaxAge] = "86400"
        return answer
    }

    private static func response(
        _ answer: RelayAnswer, to method: HTTPRequest.Method, of departure: ClientDeparture?
    ) -> Response {
        var fields = answer.headers
        fields[.contentType] = answer.contentType
        // A 304 keeps the length of the content that is not sent again (RFC 9110, §8.6).
        if answer.status != 304 {
            fields[.contentLength] = answer.status == 204 ? nil : String(answer.body.count)
        }
        let hasBody = method != .head && !answer.body.isEmpty
        if let stream = answer.stream {
            fields[.contentLength] = nil
            return Response(
                status: HTTPResponse.Status(code: answer.status), headers: fields,
                body: Self.streamedBody(stream, until: departure))
        }
        if let unwritten = answer.unwritten {
            return Response(
                status: HTTPResponse.Status(code: answer.status), headers: fields,
                body: Self.watchedBody(answer.body, unwritten: unwritten))
        }
        return Response(
            status: HTTPResponse.Status(code: answer.status), headers: fields,
            body: hasBody
                ? ResponseBody(byteBuffer: ByteBuffer(bytes: answer.body)) : ResponseBody())
    }

    /// Returns a body whose parts are written as they come, each after the previous one was sent.
    ///
    /// It ends as soon as the client goes. Otherwise it would count as one of the user's streams
    /// until the next part cannot be written.
    private static func streamedBody(
        _ stream: AnswerStream, until departure: ClientDeparture?
    ) -> ResponseBody {
        ResponseBody { writer in
            let remove = departure?.whenGone { stream.end() }
            defer {
                remove?()
                stream.end()
            }
            while let part = await stream.next() { try await writer.write(ByteBuffer(bytes: part)) }
            try await writer.finish(nil)
        }
    }

    /// Returns a body that calls `unwritten` if it could not be written.
    private static func watchedBody(
        _ bytes: [UInt8], unwritten: @escaping @Sendable () async -> Void
    ) -> ResponseBody {
        ResponseBody(contentLength: bytes.count) { writer in
            do {
                try await writer.write(ByteBuffer(bytes: bytes))
                try await writer.finish(nil)
            } catch {
                await unwritten()
                throw error
            }
        }
    }
}
