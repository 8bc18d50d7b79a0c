import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import RelayModel

/// The one place where requests become values and answers become responses.
///
/// It reads the body within its limit, gives each request its UUID, maps errors, and adds the
/// header fields that every answer has.
struct RelayDoor: Sendable {
    private let dependencies: RelayDependencies
    private let meter: RequestMeter

    init(_ dependencies: RelayDependencies) {
        self.dependencies = dependencies
        meter = RequestMeter(dependencies.metrics)
    }

    /// Answers one request; `path` is the route's template, `nil` if no path matched.
    func answer(
        _ request: Request, context: RelayContext, route: RelayRoute?, path: String?,
        allowed: String?
    ) async -> Response {
        let uuid = RandomIdentifiers(dependencies.randomBytes).uuid()
        let began = dependencies.now()
        var answer: RelayAnswer
        do {
            answer = try await attempt(
                request, context: context, route: route, path: path, allowed: allowed, uuid: uuid)
        } catch {
            answer = refusal(error, uuid: uuid, logger: context.logger)
        }
        if route?.patience == .held, context.isConnected {
            // Watching whether the client is still there reads ahead on the connection, which is
            // of no use for another request afterwards: not after a refusal either.
            answer.headers[.connection] = "close"
        }
        meter.record(
            answer.status, method: request.method.rawValue, path: path ?? "unknown",
            dependencies.now().duration(since: began))
        answer.headers.append(
            contentsOf: Self.commonFields(uuid: uuid, origin: request.headers[.origin]))
        return Self.response(answer, to: request.method)
    }

    private func attempt(
        _ request: Request, context: RelayContext, route: RelayRoute?, path: String?,
        allowed: String?, uuid: String
    ) async throws -> RelayAnswer {
        guard let path, let allowed else {
            let target = String(request.uri.path.prefix(200))
            throw APIError(.notFound, "there is no call at \(target)")
        }
        if request.method == .options {
            return Self.preflight(
                allowed: allowed, asked: request.headers[.accessControlRequestHeaders])
        }
        guard let route else {
            throw RefusedMethod(method: request.method.rawValue, allowed: allowed)
        }
        let isHeld = route.patience == .held
        var call = RelayRequest(
            method: request.method.rawValue, target: request.head.path ?? "",
            headers: request.headers,
            parameters: Self.parameters(of: request.uri.path, template: path),
            body: isHeld ? [] : try await readBody(request, limit: route.bodyLimit),
            uuid: uuid, receivedAt: dependencies.now())
        call.authority = request.head.authority
        guard isHeld, context.isConnected else { return try await route.respond(call) }
        return try await hold(call, request, route)
    }

    /// Answers while watching whether the client is still there; if it goes, the task is cancelled.
    private func hold(
        _ call: RelayRequest, _ request: Request, _ route: RelayRoute
    ) async throws -> RelayAnswer {
        try await request.body.consumeWithCancellationOnInboundClose { _ in
            try await route.respond(call)
        }
    }

    /// Reads the body, and stops as soon as it is known to be too large.
    private func readBody(_ request: Request, limit: RelayRoute.BodyLimit) async throws -> [UInt8] {
        let maximum =
            switch limit {
            case .request: dependencies.limits.requestBytes
            case .webhook: dependencies.limits.webhookBytes
            }
        let tooLarge = APIError(.quotaExceeded, "the body is larger than \(maximum) bytes")
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > maximum {
            throw tooLarge
        }
        var bytes: [UInt8] = []
        do {
            for try await part in request.body {
                guard bytes.count + part.readableBytes <= maximum else { throw tooLarge }
                bytes.append(contentsOf: part.readableBytesView)
            }
        } catch  where !(error is APIError || error is CancellationError) {
            // Its client went, or does not speak HTTP: no fault of the relay's own.
            throw APIError(.badRequest, "the body was cut off")
        }
        return bytes
    }

    private func refusal(_ error: any Error, uuid: String, logger: Logger) -> RelayAnswer {
        let mapped = ErrorMapping(error)
        logger.log(
            level: mapped.logLevel, "refused a request",
            metadata: [
                "uuid": .string(uuid), "code": .string(mapped.apiError.code.rawValue),
                "reason": .string(mapped.logReason),
            ])
        var answer = RelayAnswer(mapped.apiError, uuid: uuid)
        answer.headers.append(contentsOf: mapped.headers)
        return answer
    }

    // MARK: The form of requests and answers

    /// The variable parts of a path, decoded; `template` matched it.
    static func parameters(of path: String, template: String) -> [String: String] {
        var parameters: [String: String] = [:]
        var names = template.utf8[...]
        var parts = path.utf8[...]
        while let name = nextPart(of: &names), let part = nextPart(of: &parts) {
            guard name.first == UInt8(ascii: "{") else { continue }
            parameters[String(Substring(name.dropFirst().dropLast()))] =
                QueryParameters.decodePath(Substring(part))
        }
        return parameters
    }

    /// Takes the next part of a path that is not empty; `nil` at its end.
    private static func nextPart(of path: inout Substring.UTF8View) -> Substring.UTF8View? {
        path = path.drop { $0 == UInt8(ascii: "/") }
        guard !path.isEmpty else { return nil }
        let part = path.prefix { $0 != UInt8(ascii: "/") }
        path = path[part.endIndex...]
        return part
    }

    /// What browsers must be told before they let a page read the answer.
    ///
    /// The page's own origin is named, because a client that sends its request with credentials
    /// gets nothing to read under `*`. The relay takes no cookies, so nobody is let in by it.
    private static func commonFields(uuid: String, origin: String?) -> HTTPFields {
        var fields = HTTPFields()
        fields[.appleRequestUUID] = uuid
        fields[.accessControlAllowOrigin] = origin ?? "*"
        if origin != nil {
            fields[.accessControlAllowCredentials] = "true"
            fields[.vary] = "Origin"
        }
        fields[.accessControlExposeHeaders] =
            "X-Apple-Request-UUID, X-Apple-CloudKit-Web-Auth-Token, X-Apple-CloudKit-Session, "
            + "Retry-After"
        fields[.cacheControl] = "no-store"
        return fields
    }

    private static func preflight(allowed: String, asked: String?) -> RelayAnswer {
        var answer = RelayAnswer(status: 204)
        answer.headers[.accessControlAllowMethods] = allowed
        // Whatever a client's library adds of its own is ignored, and must not stop it.
        answer.headers[.accessControlAllowHeaders] =
            asked.flatMap { $0.utf8.count <= 1024 ? $0 : nil }
            ?? "Content-Type, Authorization, ckAPIToken, X-Belfry-User, X-Belfry-Device, "
            + "X-Apple-CloudKit-Request-KeyID, X-Apple-CloudKit-Request-ISO8601Date, "
            + "X-Apple-CloudKit-Request-SignatureV1"
        answer.headers[.accessControlMaxAge] = "86400"
        return answer
    }

    private static func response(
        _ answer: RelayAnswer, to method: HTTPRequest.Method
    ) -> Response {
        var fields = answer.headers
        fields[.contentType] = answer.contentType
        fields[.contentLength] = answer.status == 204 ? nil : String(answer.body.count)
        let hasBody = method != .head && !answer.body.isEmpty
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

    /// A body that tells when it could not be written.
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

extension HTTPField.Name {
    /// Names the request, as CloudKit's answers do.
    static let appleRequestUUID = unchecked("X-Apple-Request-UUID")
    /// The user's token for the next request.
    static let webAuthToken = unchecked("X-Apple-CloudKit-Web-Auth-Token")

    /// The same in the clients of January 2016.
    static let session = unchecked("X-Apple-CloudKit-Session")

    /// A name that is known to be one.
    static func unchecked(_ name: String) -> HTTPField.Name {
        guard let field = HTTPField.Name(name) else {
            preconditionFailure("\(name) is not the name of a header field")
        }
        return field
    }
}
