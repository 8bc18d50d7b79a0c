import Logging
import RelayModel
import Storage

/// Who makes an administrative call, and what that token may do.
struct Administrator: Sendable, Hashable {
    /// What the audit log calls the token.
    let label: String
    /// Whether it is the token of the configuration, which alone may hand out others.
    let isMain: Bool
    /// Whether it may change anything.
    let mayChange: Bool
    /// The container that it is good for; `nil` for all of them.
    let container: ContainerKey?
    /// The token's verifier, by which a session finds it again.
    let verifier: String
    /// The session of the console that makes the call in the token's place, if one does.
    var session: ConsoleSession?

    /// The token of the configuration, by its verifier.
    static func main(_ verifier: String) -> Administrator {
        Administrator(
            label: "admin.token", isMain: true, mayChange: true, container: nil, verifier: verifier)
    }

    private init(
        label: String, isMain: Bool, mayChange: Bool, container: ContainerKey?, verifier: String
    ) {
        self.label = label
        self.isMain = isMain
        self.mayChange = mayChange
        self.container = container
        self.verifier = verifier
    }

    init(_ token: AdminToken) {
        self.init(
            label: "\(token.label) (\(token.id))", isMain: false, mayChange: token.mayChange,
            container: token.container, verifier: token.verifier)
    }
}

/// What an administrative call needs: made of its path and of what it does, so that a call that is
/// added needs the most until it says that it needs less.
struct AdministrationNeed: Sendable, Hashable {
    /// Whether it only reads.
    let effect: RelayRoute.Effect
    /// Whether everything that it touches belongs to the container that its path names.
    let isOfContainer: Bool
    /// Whether it is about the caller alone, and so every token may make it.
    let isOwn: Bool

    init(of call: AdministrationCall) {
        effect = call.effect
        isOwn = AdministrationCall.own.contains { call.path == $0 || call.path.hasPrefix($0 + "/") }
        isOfContainer =
            call.path == AdministrationCall.container
            || call.path.hasPrefix(AdministrationCall.container + "/")
    }

    /// Lets `administrator` make the call `request`.
    ///
    /// - Throws: ``AuthenticationRefusal/notAllowed(_:)`` that says what the token lacks.
    func check(
        _ administrator: Administrator, _ request: RelayRequest
    ) throws(AuthenticationRefusal) {
        if administrator.isMain || isOwn { return }
        guard effect == .reads || administrator.mayChange else {
            throw .notAllowed("this token may read only")
        }
        guard isOfContainer else {
            guard effect == .reads else {
                throw .notAllowed("this call needs the token of the configuration, admin.token")
            }
            guard administrator.container == nil else {
                throw .notAllowed("this token is valid for the calls of one container only")
            }
            return
        }
        guard let container = administrator.container else { return }
        guard (try? request.containerKey()) == container else {
            throw .notAllowed("this token is valid for another container")
        }
    }
}

/// Lets administrative calls in, and notes what was done.
struct AdministrationAccess: Sendable {
    /// The token of the configuration; `nil` closes the surface.
    let expected: String?
    let registry: any AdministrationRegistry
    let sessions: ConsoleSessions
    let cookie: ConsoleCookie
    let turnstile: Turnstile
    let logger: Logger
    /// What a call may name as its shard.
    let shard: ShardParameter
    /// Where calls with tokens of one container wait for each other.
    let line: ReaderLine
    /// Answers those of them that have long bodies.
    let bodies: LongBodies

    /// Answers what a token of one container asks for when it is the container's turn: a list may
    /// look through much of the log, and what one container's tokens ask for at the same time must
    /// not take all the processors.
    ///
    /// A long body may name fifty thousand dead letters, or a schema of twenty thousand fields: two
    /// of these at a time would be all the processors of a small machine.
    func inTurn(
        _ respond: @escaping AdministrationRoute.Respond
    ) -> AdministrationRoute.Respond {
        { [line, bodies] request, administrator in
            guard let container = administrator.container else {
                return try await respond(request, administrator)
            }
            return try await line.turn(of: container) {
                try await bodies.working(request, of: container, by: .server) {
                    try await respond(request, administrator)
                }
            }
        }
    }

    /// Says whose token a request has, as soon as its head is there.
    ///
    /// Tokens are compared when it is their turn, so that nobody guesses many. A session's secret
    /// cannot be guessed, and one that has ended is no guess.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says what is wrong with it, and 429.
    func admit(
        _ request: RelayRequest, by credentials: AdministrationRoute.Credentials
    ) async throws -> Administrator {
        if credentials == .tokenOrSession, let secret = cookie.secret(in: request) {
            return try await administrator(signedInBy: secret, request)
        }
        // A request without any token is no guess.
        _ = try AdministrationToken(expected).text(of: request)
        return try await turnstile.judge(
            request.peer, wrong: AuthenticationRefusal.self
        ) {
            try await administrator(of: request, by: credentials)
        }
    }

    /// Whose token a whole request has: while its body came that may have been revoked, or the
    /// session have ended.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says what is wrong with it.
    func current(
        _ known: Administrator, of request: RelayRequest
    ) async throws -> Administrator {
        guard request.announcesBody else { return known }
        if known.session != nil, let secret = cookie.secret(in: request) {
            return try await administrator(signedInBy: secret, request)
        }
        return try await administrator(withTokenOf: known.verifier, at: request.receivedAt)
    }

    /// Whose session it is; it ends with its token.
    private func administrator(
        signedInBy secret: String, _ request: RelayRequest
    ) async throws -> Administrator {
        try ConsoleCookie.checkOrigin(of: request)
        let session = try sessions.use(secret, at: request.receivedAt)
        do {
            var administrator = try await administrator(
                withTokenOf: session.token, at: request.receivedAt)
            administrator.session = session
            return administrator
        } catch let error as AuthenticationRefusal {
            sessions.endAll(with: session.token)
            guard case .adminToken(let reason) = error else { throw error }
            throw AuthenticationRefusal.adminSession("its token does not count: \(reason)")
        }
    }

    /// Answers one call if its token may make it.
    ///
    /// What may change something is noted before it is carried out, so that no crash hides it; what
    /// a known token is refused is noted too. Where the store has no room for the note, the call
    /// goes on and the log says so: it may be the one that makes room.
    func answer(
        _ request: RelayRequest, by administrator: Administrator, _ need: AdministrationNeed,
        _ respond: AdministrationRoute.Respond
    ) async throws -> RelayAnswer {
        try count(administrator)
        do {
            try need.check(administrator, request)
        } catch {
            let note = await begin(request, by: administrator)
            await end(note, status: error.apiError.code.httpStatus, error.apiError.code)
            throw error
        }
        // It names the shards: to those alone who may make the call.
        try shard.check(request)
        guard need.effect == .changes else { return try await respond(request, administrator) }
        let note = await begin(request, by: administrator)
        do {
            let answer = try await respond(request, administrator)
            await end(note, status: answer.status, nil)
            return answer
        } catch {
            let code = ErrorMapping(error).apiError.code
            await end(note, status: code.httpStatus, code)
            throw error
        }
    }

    /// Whose token the request has.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says what is wrong with it.
    private func administrator(
        of request: RelayRequest, by credentials: AdministrationRoute.Credentials
    ) async throws -> Administrator {
        let token = try AdministrationToken(expected)
        let text = try token.text(of: request)
        if try token.matches(request) { return .main(Secrets.verifier(of: text)) }
        if credentials == .tokenOrCode,
            let verifier = sessions.redeem(text, at: request.receivedAt)
        {
            return try await administrator(withTokenOf: verifier, at: request.receivedAt)
        }
        return try await administrator(
            withTokenOf: Secrets.verifier(of: text), at: request.receivedAt)
    }

    /// Whose token it is that has this verifier, as long as it counts.
    private func administrator(
        withTokenOf verifier: String, at now: Timestamp
    ) async throws -> Administrator {
        if try AdministrationToken(expected).hasVerifier(verifier) { return .main(verifier) }
        guard let known = try await registry.adminToken(verifier: verifier) else {
            throw AuthenticationRefusal.adminToken("it is another one")
        }
        guard known.isLive(at: now) else {
            throw AuthenticationRefusal.adminToken(
                known.revokedAt == nil ? "it has ended" : "it was revoked")
        }
        return Administrator(known)
    }

    private func begin(_ request: RelayRequest, by administrator: Administrator) async -> Int64? {
        let entry = AuditEntry(
            at: request.receivedAt, caller: administrator.label, method: request.method,
            path: Self.noted(request.path))
        do {
            return try await registry.beginAudit(entry)
        } catch {
            warn(error)
            return nil
        }
    }

    /// Counts a call of a token of one container: what it changes, or is refused, is written down,
    /// and the writer is everybody's.
    ///
    /// It is not inlined because the optimiser of Swift 6.3 ends with a fault where it has this
    /// within ``answer(_:by:_:_:)``.
    @inline(never)
    private func count(_ administrator: Administrator) throws {
        guard let container = administrator.container else { return }
        try turnstile.use(administering: container)
    }

    /// A path as it stands in the audit log, which more may read than may change anything: a secret
    /// that somebody took for the ID of its token or key must not be there.
    private static func noted(_ path: String) -> String {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // As the router, it passes over slashes that follow each other.
        var before = ""
        for index in parts.indices where !parts[index].isEmpty {
            let part = parts[index]
            if ["tokens", "keys"].contains(before) { parts[index] = part.secretsBeginning }
            before = part
        }
        return String(parts.joined(separator: "/").prefix(512))
    }

    private func end(_ note: Int64?, status: Int, _ code: ServerErrorCode?) async {
        guard let note else { return }
        do {
            try await registry.endAudit(note, status: status, code: code?.rawValue)
        } catch {
            warn(error)
        }
    }

    private func warn(_ error: any Error) {
        logger.warning(
            "an administrative call is not in the audit log", metadata: ["reason": "\(error)"])
    }
}

extension String {
    /// What may be told, in logs too, of a text that should be an ID: all of it, unless it is so
    /// long that it may be the secret.
    var secretsBeginning: String { utf8.count > 16 ? "\(prefix(8))…" : self }
}
