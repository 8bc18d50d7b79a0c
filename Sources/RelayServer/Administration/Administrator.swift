import Logging
import RelayModel
import Storage

/// The caller of an administrative call, with the rights of its token.
struct Administrator: Sendable, Hashable {
    /// The name of the token in the audit log.
    let label: String
    /// Whether the token is the configuration's `admin.token`; only that one may create others.
    let isMain: Bool
    /// Whether the token may make calls that change something.
    let mayChange: Bool
    /// The container that the token is limited to; `nil` if it is valid for all containers.
    let container: ContainerKey?
    /// The verifier of the token; a session uses it to look the token up again.
    let verifier: String
    /// The console session that makes the call on behalf of the token; `nil` if the token itself
    /// does.
    var session: ConsoleSession?

    /// Returns the caller that has the configuration's token.
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

/// The rights that an administrative call needs.
///
/// They follow from the call's path and effect, so a new call needs the strongest rights unless its
/// description says otherwise.
struct AdministrationNeed: Sendable, Hashable {
    /// Whether the call only reads.
    let effect: RelayRoute.Effect
    /// Whether everything that the call touches belongs to the container in its path.
    let isOfContainer: Bool
    /// Whether the call is about the caller alone, so that every token may make it.
    let isOwn: Bool

    init(of call: AdministrationCall) {
        effect = call.effect
        isOwn = AdministrationCall.own.contains { call.path == $0 || call.path.hasPrefix($0 + "/") }
        isOfContainer =
            call.path == AdministrationCall.container
            || call.path.hasPrefix(AdministrationCall.container + "/")
    }

    /// Checks that `administrator` may make the call `request`.
    ///
    /// - Throws: ``AuthenticationRefusal/notAllowed(_:)`` that says what the token lacks.
    func check(
        _ administrator: Administrator, _ request: RelayRequest
    ) throws(AuthenticationRefusal) {
        if administrator.isMain || isOwn { return }
        guard effect == .reads || administrator.mayChange else {
            throw .notAllowed("this token may only read")
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

/// Admits administrative calls, and writes the audit log.
struct AdministrationAccess: Sendable {
    /// The token of the configuration; `nil` closes the surface.
    let expected: String?
    let registry: any AdministrationRegistry
    let sessions: ConsoleSessions
    let cookie: ConsoleCookie
    let turnstile: Turnstile
    let logger: Logger
    /// The check of the shard that a call may name.
    let shard: ShardParameter
    /// The queue in which the calls of one container's tokens wait for each other.
    let line: ReaderLine
    /// The executor of those calls that have long bodies.
    let bodies: LongBodies

    /// Returns a responder that makes the calls of one container's tokens wait for each other.
    ///
    /// A list may search much of the log, and simultaneous calls of one container's tokens must not
    /// take all processors.
    ///
    /// A long body may name fifty thousand dead letters, or contain a schema of twenty thousand
    /// fields. Two of these at a time would take all processors of a small machine, so `bodies`
    /// works them one after the other.
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

    /// Returns the caller of a request as soon as its head has arrived.
    ///
    /// Comparisons of tokens wait for their turn, so that a client cannot guess many. Sessions do
    /// not: a session's secret is too long to guess, and an ended session is not a guess.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says what is wrong with the credential, and 429.
    func admit(
        _ request: RelayRequest, by credentials: AdministrationRoute.Credentials
    ) async throws -> Administrator {
        if credentials == .tokenOrSession, let secret = cookie.secret(in: request) {
            return try await administrator(signedInBy: secret, request)
        }
        // A request without a token is not a guess, so it must not count as one.
        _ = try AdministrationToken(expected).text(of: request)
        return try await turnstile.judge(
            request.peer, wrong: AuthenticationRefusal.self
        ) {
            try await administrator(of: request, by: credentials)
        }
    }

    /// Checks the caller again once the whole request is there.
    ///
    /// The token may have been revoked, or the session may have ended, while the body arrived.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says what is wrong with the credential.
    func current(
        _ known: Administrator, of request: RelayRequest
    ) async throws -> Administrator {
        guard request.announcesBody else { return known }
        if known.session != nil, let secret = cookie.secret(in: request) {
            return try await administrator(signedInBy: secret, request)
        }
        return try await administrator(withTokenOf: known.verifier, at: request.receivedAt)
    }

    /// Returns the caller of a session, and ends all sessions of a token that is no longer valid.
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
            throw AuthenticationRefusal.adminSession("its token is no longer valid: \(reason)")
        }
    }

    /// Answers one call if its token may make it.
    ///
    /// A call that may change something is written to the audit log before it runs, so that a crash
    /// cannot hide it. A call that is refused to a known token is written too. If the store has no
    /// room for the entry, the call still runs, because it may be the one that frees room; the
    /// relay then logs a warning.
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
        // The error message names the shards, so this check comes after that of the caller's
        // rights.
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

    /// Returns the caller whose token, or one-time code, the request has.
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

    /// Returns the caller whose valid token has this verifier.
    private func administrator(
        withTokenOf verifier: String, at now: Timestamp
    ) async throws -> Administrator {
        if try AdministrationToken(expected).hasVerifier(verifier) { return .main(verifier) }
        guard let known = try await registry.adminToken(verifier: verifier) else {
            throw AuthenticationRefusal.adminToken("it is not a token of this relay")
        }
        guard known.isLive(at: now) else {
            throw AuthenticationRefusal.adminToken(
                known.revokedAt == nil ? "it has expired" : "it was revoked")
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

    /// Counts a call of a one-container token against the container's rate.
    ///
    /// Changes and refusals are written to the audit log, and all containers share the store's
    /// writer.
    ///
    /// The function is not inlined because the optimiser of Swift 6.3 crashes when it inlines it
    /// into ``answer(_:by:_:_:)``.
    @inline(never)
    private func count(_ administrator: Administrator) throws {
        guard let container = administrator.container else { return }
        try turnstile.use(administering: container)
    }

    /// Returns a path as the audit log records it.
    ///
    /// A read-only token can read the audit log. So if a client put the secret of a token or key in
    /// the place of its ID, the secret must not be in the log.
    private static func noted(_ path: String) -> String {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // Like the router, this skips empty parts between consecutive slashes.
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
            "could not write an administrative call to the audit log",
            metadata: ["reason": "\(error)"])
    }
}

extension String {
    /// The part of an alleged ID that answers and logs may show.
    ///
    /// That is all of it, unless it is so long (over 16 bytes) that it may be the secret.
    var secretsBeginning: String { utf8.count > 16 ? "\(prefix(8))…" : self }
}
