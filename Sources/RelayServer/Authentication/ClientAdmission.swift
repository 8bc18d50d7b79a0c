import HTTPTypes
import RelayModel
import Storage

/// Admits the calls of clients, and passes the callers to the routes.
///
/// The caller is judged as soon as a request's head is there. If a body follows, the caller is
/// judged again after it, because much may have happened meanwhile. Only then is a signature over
/// the body verified and used up, and a user token renewed. What cannot have changed is not
/// repeated: the verification of a token's own signature, and the counting of the request.
struct ClientAdmission: Sendable {
    /// Answers an admitted call.
    typealias Respond = @Sendable (RelayRequest, AdmittedCaller) async throws -> RelayAnswer

    let registry: any ContainerRegistry & AccessKeyRegistry & SessionRegistry
    let sessions: SessionService
    let turnstile: Turnstile
    /// The URL at which users sign in.
    let signIn: SignInAddress
    /// Parses long bodies, once the caller is known.
    let bodies: LongBodies

    /// Creates the route of a client's call, which only some callers may make.
    func route(
        _ method: String, _ path: String, for callers: CallerRule.Callers = .users,
        in databases: CallerRule.Databases = .ofPath,
        bodyLimit: RelayRoute.BodyLimit = .request, patience: RelayRoute.Patience = .prompt,
        effect: RelayRoute.Effect? = nil, tokens: CallerRule.Tokens = .renewed,
        respond: @escaping Respond
    ) -> RelayRoute {
        let rule = CallerRule(
            callers: callers, databases: databases, tokens: tokens,
            effect: effect ?? RelayRoute.Effect(of: method))
        return RelayRoute(
            .client, method, path, bodyLimit: bodyLimit, patience: patience, effect: effect,
            admit: { head in try await recognize(head, rule, respond) })
    }

    /// Returns the caller of a request that is only a head, such as one that opens a long
    /// connection.
    ///
    /// It counts as a request of the user, unless it was counted before.
    ///
    /// - Throws: The errors of a call that every caller known to the container may make.
    func admit(
        _ request: RelayRequest, isCounted: Bool = false
    ) async throws -> HeadAdmission {
        // The result is kept small, because ten thousand waiting connections may each keep one.
        var judge = try await authenticator(of: request)
        let key = try judge.recognizeKey(of: request)
        judge.session = try await sessions.standing(of: request, in: judge.settings)
        judge.verified = try judge.verifiedToken(of: request, holding: key)
        let caller = try judge.caller(of: request, database: .public, holding: key)
        if !isCounted { try count(caller, of: judge.settings) }
        let token = await sessions.renewed(
            judge.session, of: judge.settings, for: caller, request, judge.verified)
        let admitted = AdmittedCaller(
            settings: judge.settings, database: .public, caller: caller,
            redirectURL: judge.redirectURL)
        return HeadAdmission(
            caller: admitted, key: key, token: token, session: judge.session?.id)
    }

    // MARK: The head

    /// Returns the key of a request and its container, as far as the head shows; no signature is
    /// verified.
    ///
    /// - Throws: The error 404 for an unknown container, and ``AuthenticationRefusal`` for an
    ///   unknown key.
    func recognizeKey(
        of head: RelayRequest
    ) async throws -> (container: ContainerSettings, key: AccessKey) {
        let judge = try await authenticator(of: head)
        return (judge.settings, try judge.recognizeKey(of: head))
    }

    /// What the head of a request has shown.
    private struct Known: Sendable {
        var judge: Authenticator
        let key: AccessKey
        /// Whether the request was counted for its user.
        var isCounted = false
    }

    /// Checks, as far as possible before the body is read, that the caller is known to the
    /// container and may make the call.
    ///
    /// - Throws: The error 404 for an unknown container, and ``AuthenticationRefusal`` for
    ///   everything else.
    private func recognize(
        _ head: RelayRequest, _ rule: CallerRule, _ respond: @escaping Respond
    ) async throws -> RelayRoute.Admission {
        // No session is looked up for an unknown key.
        let judge = try await authenticator(of: head)
        let key = try judge.recognizeKey(of: head)
        // Without a body there is nothing to save, because the call itself checks everything.
        let known =
            head.announcesBody
            ? try await judgeUser(of: head, rule, judge, key) : Known(judge: judge, key: key)
        // A signature is not verified yet, so the request must not count against the key's limit.
        return RelayRoute.Admission(
            container: judge.settings, key: key.kind == .serverToServer ? nil : key.id,
            who: key.kind.rawValue
        ) { request in
            try await answer(request, rule, known, respond)
        }
    }

    private func judgeUser(
        of head: RelayRequest, _ rule: CallerRule, _ judge: Authenticator, _ key: AccessKey
    ) async throws -> Known {
        var known = Known(judge: judge, key: key)
        known.judge.session = try await sessions.standing(of: head, in: known.judge.settings)
        known.judge.verified = try known.judge.verifiedToken(of: head, holding: known.key)
        let caller = try known.judge.caller(holding: known.key, head)
        if rule.needsUser(of: head) {
            _ = try caller.requiredUser(redirectURL: known.judge.redirectURL)
        }
        // A signature is not verified yet, so the request must not count against the user's limit.
        if known.key.kind != .serverToServer {
            try count(caller, of: known.judge.settings)
            known.isCounted = true
        }
        return known
    }

    // MARK: The whole request

    /// Judges the caller of the whole request, answers it, and hands over the user's next token.
    private func answer(
        _ request: RelayRequest, _ rule: CallerRule, _ known: Known, _ respond: Respond
    ) async throws -> RelayAnswer {
        let database = try rule.database(of: request)
        let (judge, key) = try await current(known, request)
        let caller = try judge.caller(of: request, database: database, holding: key)
        if key.kind == .serverToServer { try turnstile.use(key: key.id, of: judge.settings) }
        if !known.isCounted { try count(caller, of: judge.settings) }
        if case .signature = caller.proof, rule.effect == .changes {
            try await useSignature(of: request, judge.settings.key)
        }
        let token = await sessions.renewed(
            judge.session, of: judge.settings, for: caller, request, judge.verified)
        if rule.needsUser(of: request) {
            _ = try caller.requiredUser(redirectURL: judge.redirectURL)
        }
        let admitted = AdmittedCaller(
            settings: judge.settings, database: database, caller: caller,
            redirectURL: judge.redirectURL)
        let read = try await bodies.parsed(
            request, of: judge.settings.key, by: admitted.party)
        let answer = try await turnstile.compiling(
            for: caller.user, of: judge.settings.key
        ) {
            try await respond(read, admitted)
        }
        guard rule.tokens == .renewed else { return answer }
        return answer.handing(
            over: token ?? Authenticator.cloudKitUserToken(of: request), to: request)
    }

    /// Returns the present state of the caller's credentials.
    private func current(
        _ known: Known, _ request: RelayRequest
    ) async throws -> (Authenticator, AccessKey) {
        var judge = known.judge
        var key = known.key
        if request.announcesBody {
            judge = try await authenticator(of: request)
            key = try judge.recognizeKey(of: request)
            judge.verified = known.judge.verified
        }
        judge.session = try await sessions.standing(of: request, in: judge.settings)
        judge.verified = try judge.verifiedToken(of: request, holding: key)
        return (judge, key)
    }

    /// Reads the settings and keys of the container that the request names.
    private func authenticator(of request: RelayRequest) async throws -> Authenticator {
        let settings = try await registry.settings(in: request)
        // After signing in, the user returns to the page that made the request.
        return Authenticator(
            settings: settings, keys: try await registry.accessKeys(of: settings.key),
            redirectURL: signIn.url(of: settings.key, origin: request.header("Origin")))
    }

    private func count(
        _ caller: Caller, of container: ContainerSettings
    ) throws(APIError) {
        guard let user = caller.user else { return }
        try turnstile.use(user: user, of: container)
    }

    /// Accepts a signature only once for a call that may change something.
    ///
    /// Otherwise a copied request could be sent again for as long as its date is valid.
    private func useSignature(
        of request: RelayRequest, _ container: ContainerKey
    ) async throws {
        guard let nonce = try ServerSignature(request)?.nonce else { return }
        guard
            try await registry.useSignature(
                nonce.bytes, of: container, until: nonce.until, at: request.receivedAt)
        else { throw AuthenticationRefusal.signature(.usedBefore) }
    }
}

/// The admitted caller of a connection.
struct HeadAdmission: Sendable {
    let caller: AdmittedCaller
    let key: AccessKey
    /// The user's next token.
    let token: String?
    /// The session of the token in the request.
    let session: UUIDBytes?
}

/// The rule of who may make a call, and in which database.
struct CallerRule: Sendable, Hashable {
    /// The admitted callers.
    enum Callers: Sendable, Hashable {
        /// Every caller that the container knows.
        case known
        /// Callers that act for a user.
        case users
        /// Callers that act for a user; in the public database, every known caller.
        case owners
    }

    /// The database of a call.
    enum Databases: Sendable, Hashable {
        /// The one in the path, or the public one if the path has none.
        case ofPath
        /// The public one, whatever the path says.
        case onlyPublic
    }

    /// What happens to the user token.
    enum Tokens: Sendable, Hashable {
        /// The answer contains the next one.
        case renewed
        /// The call ends it.
        case ended
    }

    let callers: Callers
    let databases: Databases
    let tokens: Tokens
    /// The effect of the call.
    let effect: RelayRoute.Effect

    /// Returns whether `request` needs a user.
    func needsUser(of request: RelayRequest) -> Bool {
        switch callers {
        case .known: false
        case .users: true
        case .owners:
            // Any other word is refused as an unknown database.
            ["private", "shared"].contains(request.parameters["database"])
        }
    }

    /// Returns the database of `request`.
    ///
    /// - Throws: The error 400 if there is no such database.
    func database(of request: RelayRequest) throws(APIError) -> DatabaseScope {
        guard databases == .ofPath, request.parameters["database"] != nil else { return .public }
        return try request.choice("database")
    }
}

/// An admitted call of a client.
struct AdmittedCaller: Sendable {
    /// The settings of the call's container.
    let settings: ContainerSettings
    /// The database of the call.
    let database: DatabaseScope
    /// The caller.
    let caller: Caller
    /// The URL at which the user signs in, and then returns to the page that made the request.
    let redirectURL: String

    /// Returns the user for whom the call is made.
    func user() throws(AuthenticationRefusal) -> UserID {
        try caller.requiredUser(redirectURL: redirectURL)
    }

    /// The party in whose turn the call reads.
    var party: QueryParty {
        guard caller.proof == .apiToken else { return .server }
        return caller.user.map { .user($0) } ?? .strangers
    }
}

extension ContainerRegistry {
    /// Returns the settings of a container.
    ///
    /// - Throws: The error 404 if it is unknown.
    func settings(of key: ContainerKey) async throws -> ContainerSettings {
        guard let settings = try await container(key) else {
            throw APIError(
                .notFound,
                "there is no container \(key.container) in \(key.environment.rawValue)")
        }
        return settings
    }

    /// Returns the settings of the container that the path names.
    ///
    /// - Throws: The error 404 if it is unknown.
    func settings(in request: RelayRequest) async throws -> ContainerSettings {
        try await settings(of: request.containerKey())
    }

    /// Returns the key of the container that the path names.
    ///
    /// - Throws: The error 404 if it is unknown.
    func key(in request: RelayRequest) async throws -> ContainerKey {
        try await settings(in: request).key
    }
}

extension RelayAnswer {
    /// Adds a user token for the next request, which CloudKit's clients expect.
    ///
    /// It is a new token of the session; if the container has no sessions, it is the client's own
    /// token.
    func handing(over token: String?, to request: RelayRequest) -> RelayAnswer {
        guard let token, token.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else { return self }
        var answer = self
        answer.headers[.webAuthToken] = token
        if request.query["ckSession"] != nil { answer.headers[.session] = token }
        return answer
    }
}
