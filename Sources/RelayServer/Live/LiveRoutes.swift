import HTTPTypes
import Live
import RelayModel
import ServiceLifecycle
import Storage
import Synchronization

/// The routes for clients that cannot hold a WebSocket: streams of server-sent events, and polls.
struct LiveRoutes: Sendable {
    /// `nil` if the relay does not follow the log.
    let present: LiveAccess?
    let clock: any Clock<Duration>

    private static let path = "/live/1/{container}/{environment}"
    /// The maximum number of seconds for which a poll is held.
    private static let mostWait: Int64 = 25

    var routes: [RelayRoute] {
        [
            RelayRoute(open: .client, "GET", Self.path) { Self.missedUpgrade($0) },
            RelayRoute(
                .client, "POST", "\(Self.path)/stream", effect: .reads,
                admit: { head in try await admit(head, stream) }),
            RelayRoute(
                .client, "POST", "\(Self.path)/poll", patience: .watched, effect: .reads,
                admit: { head in try await admit(head, poll) }),
            RelayRoute(
                .client, "POST", "\(Self.path)/sessions", effect: .reads,
                admit: { head in try await admit(head, hold) }),
            heldStream,
            RelayRoute(
                .client, "POST", "\(Self.path)/sessions/{secret}", effect: .reads,
                admit: { head in try admit(head, say) }),
        ]
    }

    private var heldStream: RelayRoute {
        var route = RelayRoute(
            .client, "GET", "\(Self.path)/sessions/{secret}/stream",
            admit: { head in
                try admit(head) { session, _, mark in
                    try await listen(session, head, since: mark)
                }
            })
        // A HEAD request would replace the open stream, and read nothing itself.
        route.takesHead = false
        return route
    }

    /// Answers a request at the path of WebSockets that does not open one.
    ///
    /// Most often a proxy has removed the header fields that ask for it, as nginx does by default.
    /// The status is not 426, because its `Upgrade` field is forbidden in HTTP/2: nginx passes it
    /// to browsers, and these show nothing of such an answer.
    private static func missedUpgrade(_ request: RelayRequest) -> RelayAnswer {
        let error = APIError(
            .badRequest,
            "this path opens WebSockets: send \"Upgrade: websocket\" and \"Connection: Upgrade\" "
                + "on a connection without other open requests; a proxy must pass these header "
                + "fields on")
        return RelayAnswer(error, uuid: request.uuid)
    }

    private var access: LiveAccess {
        get throws(APIError) {
            guard let present else {
                throw APIError(.tryAgainLater, "live queries are not available here", retryAfter: 5)
            }
            return present
        }
    }

    /// Answers an admitted request; `mark` is the number of revocations when it was admitted.
    private typealias Respond =
        @Sendable (RelayRequest, HeadAdmission, _ mark: UInt64) async throws -> RelayAnswer

    private func admit(
        _ head: RelayRequest, _ respond: @escaping Respond
    ) async throws -> RelayRoute.Admission {
        try present?.admit(origin: head.header("Origin"))
        let isKnown = ["ckAPIToken", "Authorization", "X-Apple-CloudKit-Request-KeyID"]
            .contains { head.query[$0] != nil || head.header($0) != nil }
        guard isKnown else { return stranger(of: nil, respond) }
        let (container, key) = try await recognized(head)
        // The head may name the application, and the body its user.
        if key.kind == .apiToken, Authenticator.userToken(of: head) == nil {
            return stranger(of: container, respond)
        }
        // A signature covers the body, and so proves nothing before the body has arrived.
        let isSigned = key.kind == .serverToServer
        let party: QueryParty
        if isSigned {
            party = .strangers
        } else {
            party = try await admission(head).caller.party
        }
        return RelayRoute.Admission(
            container: container, key: isSigned ? nil : key.id, who: key.kind.rawValue,
            maximumBody: LiveSession.frameBytes
        ) { request in
            try await answer(request, by: party, isCounted: !isSigned, respond)
        }
    }

    /// Returns the admission for a request with credentials in its body; no more is read than the
    /// credentials and a set of moderate size need.
    private func stranger(
        of container: ContainerSettings?, _ respond: @escaping Respond
    ) -> RelayRoute.Admission {
        RelayRoute.Admission(container: container, maximumBody: StrangerBytes.most) { request in
            try await access.admit(
                bytes: LongBodies.weight(of: request.body), ofStrangerAt: request)
            return try await answer(request, by: .strangers, isCounted: false, respond)
        }
    }

    /// Answers a complete request; much may have changed while its body arrived.
    private func answer(
        _ request: RelayRequest, by party: QueryParty, isCounted: Bool, _ respond: Respond
    ) async throws -> RelayAnswer {
        // The body of a stranger says who it is.
        let request = try named(
            await access.clients.bodies.parsed(request, of: request.containerKey(), by: party))
        let mark = try access.revocations
        let admission = try await admission(request, isCounted: isCounted)
        if !isCounted {
            try access.turnstile.use(key: admission.key.id, of: admission.caller.settings)
        }
        return try await respond(request, admission, mark)
    }

    private func recognized(
        _ head: RelayRequest
    ) async throws -> (container: ContainerSettings, key: AccessKey) {
        do {
            return try await access.clients.recognizeKey(of: head)
        } catch let refusal as AuthenticationRefusal {
            throw Self.explained(refusal)
        }
    }

    private func admission(
        _ request: RelayRequest, isCounted: Bool = false
    ) async throws -> HeadAdmission {
        do {
            let admission = try await access.clients.admit(request, isCounted: isCounted)
            if admission.caller.caller.proof == .apiToken { _ = try admission.caller.user() }
            return admission
        } catch let refusal as AuthenticationRefusal {
            throw Self.explained(refusal)
        }
    }

    /// Returns the usual refusal, with the words for programs that a socket's last frame would
    /// have.
    private static func explained(_ refusal: AuthenticationRefusal) -> ExplainedRefusal {
        ExplainedRefusal(refusal: refusal, apiError: LiveEnd(refusing: refusal).error)
    }

    /// Returns the request with the credentials from its body.
    private func named(_ request: RelayRequest) throws -> RelayRequest {
        var named = request
        let body = try request.jsonBody()
        for name in ["ckAPIToken", "ckWebAuthToken"] {
            if let value = try body.string(name) { named.query.replace(name, by: value) }
        }
        return named
    }

    // MARK: Stream

    private func stream(
        _ request: RelayRequest, _ admission: HeadAdmission, since mark: UInt64
    ) async throws -> RelayAnswer {
        let access = try access
        let (session, hub, _) = try await open(request, admission, since: mark)
        return Self.events(from: hub, session.number) {
            access.count(hub)
            access.forget(stream: session.number)
            session.end()
            hub.end()
        }
    }

    /// Admits the client of a stream, and works its set.
    private func open(
        _ request: RelayRequest, _ admission: HeadAdmission, since mark: UInt64
    ) async throws -> (LiveSession, StreamHub, LiveIdentity) {
        let set = try request.jsonBody().reader("set")
        let access = try access
        do throws(LiveEnd) {
            try access.arrive(of: admission.caller.settings.key)
        } catch {
            throw error.error
        }
        let (session, hub, identity) = try await begin(request, admission)
        session.lag(at: hub)
        // Noted first, so that a schema that changes while the set is worked ends the stream.
        try note(session, at: hub, of: identity, since: mark)
        if let set { await session.declare(set, identity) }
        return (session, hub, identity)
    }

    /// Notes a stream, so that it can be ended, unless it was revoked while it was being admitted.
    private func note(
        _ session: LiveSession, at hub: StreamHub, of identity: LiveIdentity, since mark: UInt64
    ) throws {
        let access = try access
        access.note(hub, of: identity, session.number)
        guard let end = access.end(of: identity, since: mark) else { return }
        access.forget(stream: session.number)
        session.end()
        hub.end()
        throw end.error
    }

    private static func events(
        from hub: StreamHub, _ number: UInt64, end: @escaping @Sendable () -> Void
    ) -> RelayAnswer {
        let retry = Mutex<[UInt8]?>(Array("retry: \(1000 + number % 2000)\n\n".utf8))
        var answer = RelayAnswer(status: 200)
        answer.contentType = "text/event-stream"
        // Proxies buffer streams unless they are told not to.
        answer.headers[.acceleratorBuffering] = "no"
        answer.stream = AnswerStream(onEnd: end) {
            let first = retry.withLock { retry in
                defer { retry = nil }
                return retry
            }
            if let first { return first }
            return await hub.next()
        }
        return answer
    }

    // MARK: Sessions of EventSource

    /// Creates a session with what `EventSource` cannot send.
    private func hold(
        _ request: RelayRequest, _ admission: HeadAdmission, since mark: UInt64
    ) async throws -> RelayAnswer {
        let access = try access
        let (session, hub, identity) = try await open(request, admission, since: mark)
        let secret = access.identifiers.digits(bytes: 24)
        let head = Self.kept(request, by: identity)
        access.held.hold(HeldSession(session, at: hub, identity, access, head: head), as: secret)
        return RelayAnswer(
            status: 200,
            json: [
                "session": .string(secret),
                "seconds": .integer(HeldSessions.patience.components.seconds),
            ])
    }

    /// Admits a client that knows the secret of a session.
    private func admit(
        _ head: RelayRequest,
        _ respond:
            @escaping @Sendable (HeldSession, RelayRequest, _ mark: UInt64) async throws ->
            RelayAnswer
    ) throws -> RelayRoute.Admission {
        try present?.admit(origin: head.header("Origin"))
        let mark = try access.revocations
        let session = try access.held.session(
            head.parameters["secret"] ?? "", of: head.parameters["container"],
            head.parameters["environment"])
        return RelayRoute.Admission(
            container: session.identity.settings, key: session.identity.keyID, who: "live",
            maximumBody: LiveSession.frameBytes
        ) { request in
            do {
                // Its key is counted as for every call.
                try await access.use(session.identity, countsKey: false)
                return try await respond(session, request, mark)
            } catch let end as LiveEnd {
                throw end.error
            }
        }
    }

    private func listen(
        _ session: HeldSession, _ head: RelayRequest, since mark: UInt64
    ) async throws -> RelayAnswer {
        let secret = head.parameters["secret"] ?? ""
        let access = try access
        let held = access.held
        let place = head.header("Last-Event-ID").flatMap { LiveEventID($0) }
        let (hub, turn): (StreamHub, Int)
        do {
            (hub, turn) = try await session.open(from: place, since: mark)
        } catch {
            if (error as? LiveEnd)?.code != .taken { held.end(secret) }
            throw error
        }
        return Self.events(from: hub, UInt64(turn)) {
            access.count(hub)
            held.close(turn, of: secret)
        }
    }

    private func say(
        _ session: HeldSession, _ request: RelayRequest, since mark: UInt64
    ) async throws -> RelayAnswer {
        do {
            try await session.take(request.body)
        } catch let end as LiveEnd where end.code == .done {
            try access.held.end(request.parameters["secret"] ?? "", saying: end)
        }
        return RelayAnswer(status: 200, json: [:])
    }

    // MARK: Poll

    private func poll(
        _ request: RelayRequest, _ admission: HeadAdmission, since mark: UInt64
    ) async throws -> RelayAnswer {
        let body = try request.jsonBody()
        let wait = try body.integer("wait") ?? Self.mostWait
        guard (0...Self.mostWait).contains(wait) else {
            throw body.failure("wait", "must be 0 to \(Self.mostWait) seconds")
        }
        let set = try body.require("set", try body.reader("set"))
        let (session, hub, identity) = try await begin(request, admission)
        defer { session.end() }
        try access.streams.note(poll: session.number, of: identity)
        // After a refused set nothing else will come.
        if !(await session.declare(set, identity)) { hub.finish() }
        let release = Task { [clock] in
            try await clock.sleep(for: .seconds(wait))
            hub.release()
        }
        defer { release.cancel() }
        // A graceful shutdown does not wait for a poll, whose client will ask elsewhere.
        await withGracefulShutdownHandler {
            await hub.waitForNews()
        } onGracefulShutdown: {
            hub.release()
        }
        try Task.checkCancellation()
        if let end = try access.end(of: identity, since: mark) { throw end.error }
        var answer = RelayAnswer(status: 200)
        answer.contentType = "application/json; charset=utf-8"
        answer.body = try await Self.body(of: hub)
        return answer
    }

    /// Returns the answer to a poll, with all frames so far.
    ///
    /// Other requests have their turns in between, because large results take a quarter of a second
    /// to write.
    private static func body(of hub: StreamHub) async throws -> [UInt8] {
        var bytes = Array(#"{"frames":["#.utf8)
        var at: String?
        var taken = 0
        while true {
            let frames = try hub.takeSome(after: taken)
            guard !frames.isEmpty else { break }
            for frame in frames {
                if taken > 0 { bytes.append(UInt8(ascii: ",")) }
                bytes += frame.head
                bytes += frame.rest
                taken += frame.count
                at = frame.token ?? at
            }
            await Task.yield()
            try Task.checkCancellation()
        }
        bytes += Array("],\"at\":".utf8) + (at.map { JSONValue.string($0) } ?? .null).utf8
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    /// Returns the part of a request that is kept while its client is there: who it is.
    static func kept(_ request: RelayRequest, by identity: LiveIdentity) -> RelayRequest {
        var kept = request
        kept.headers = LiveSockets.kept(request.headers)
        kept.json = nil
        // The signature of a server covers the whole body.
        if !identity.isServer { kept.body = [] }
        return kept
    }

    private func begin(
        _ request: RelayRequest, _ admission: HeadAdmission
    ) async throws -> (LiveSession, StreamHub, LiveIdentity) {
        let (identity, welcome) = try access.identity(request.jsonBody(), admission, request)
        let hub = StreamHub(identity, try access.backlog)
        let head = Self.kept(request, by: identity)
        let session = LiveSession(try access, at: try access.streams, head: head)
        try access.streams.add(hub, of: session.number)
        do throws(LiveEnd) {
            try await session.begin(as: identity, LiveFrame(welcome))
        } catch {
            session.end()
            throw error.error
        }
        return (session, hub, identity)
    }
}
