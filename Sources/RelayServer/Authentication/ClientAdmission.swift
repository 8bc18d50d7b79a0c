import HTTPTypes
import RelayModel
import Storage

/// Lets clients' calls in, and hands the callers to what answers them.
///
/// Who calls is judged as soon as the head of a request is there. Where a body follows it is judged
/// again after that, because much may have happened while the body came; only then is a signature
/// over the body verified and used, and a user token renewed. What cannot have changed meanwhile is
/// not worked out twice: a token's own signature, and that the request was counted.
struct ClientAdmission: Sendable {
    /// What answers a call that was let in.
    typealias Respond = @Sendable (RelayRequest, AdmittedCaller) async throws -> RelayAnswer

    let registry: any ContainerRegistry & AccessKeyRegistry & SessionRegistry
    let sessions: SessionService
    let turnstile: Turnstile
    /// Where users sign in.
    let signIn: SignInAddress
    /// Parses long bodies, once it is known whose they are.
    let bodies: LongBodies

    /// A client's call, for those who may make it.
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

    /// Who stands behind the head of a request that is not answered by itself: a connection's.
    ///
    /// It counts as a request of the user, unless it has been counted.
    ///
    /// - Throws: As a call does that anybody may make whom the container knows.
    func admit(
        _ request: RelayRequest, isCounted: Bool = false
    ) async throws -> HeadAdmission {
        // As little as can be: whoever comes keeps it while it waits, with ten thousand others.
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

    /// The key with which a request is made, and its container, as far as the head shows: nothing
    /// that is signed is verified.
    ///
    /// - Throws: 404 for an unknown container, ``AuthenticationRefusal`` for an unknown key.
    func recognizeKey(
        of head: RelayRequest
    ) async throws -> (container: ContainerSettings, key: AccessKey) {
        let judge = try await authenticator(of: head)
        return (judge.settings, try judge.recognizeKey(of: head))
    }

    /// What the head of a request told.
    private struct Known: Sendable {
        var judge: Authenticator
        let key: AccessKey
        /// Whether the request was counted as its user's.
        var isCounted = false
    }

    /// Looks whether somebody makes the call whom the container knows, and who may make it, as far
    /// as that shows before the body is read.
    ///
    /// - Throws: 404 for an unknown container, ``AuthenticationRefusal`` for everything else.
    private func recognize(
        _ head: RelayRequest, _ rule: CallerRule, _ respond: @escaping Respond
    ) async throws -> RelayRoute.Admission {
        // For an unknown key no session is looked up.
        let judge = try await authenticator(of: head)
        let key = try judge.recognizeKey(of: head)
        // Without a body there is nothing to spare, and the call itself asks for all.
        let known =
            head.announcesBody
            ? try await judgeUser(of: head, rule, judge, key) : Known(judge: judge, key: key)
        // Who signs has proven nothing yet: nobody else must use up what is the key's.
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
        // Who signs has proven nothing yet: nobody else must use up what is theirs.
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

    /// What is known of the caller by now.
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

    /// Collects what the store knows of the container that the request names.
    private func authenticator(of request: RelayRequest) async throws -> Authenticator {
        let settings = try await registry.settings(in: request)
        // Whoever signs in is to come back to the page that asks.
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

    /// Lets a signature count once where something may be changed: whoever copied a request could
    /// otherwise have it carried out again for as long as its date is good.
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

/// Who stands behind a connection.
struct HeadAdmission: Sendable {
    let caller: AdmittedCaller
    let key: AccessKey
    /// The user's next token.
    let token: String?
    /// The session of the one that came.
    let session: UUIDBytes?
}

/// Who may make a call, and in which database.
struct CallerRule: Sendable, Hashable {
    /// Who may call.
    enum Callers: Sendable, Hashable {
        /// Those whom the container knows.
        case known
        /// Those of them as whom a user acts.
        case users
        /// The same, except in the public database, where anybody may act who is known.
        case owners
    }

    /// The database that a call is about.
    enum Databases: Sendable, Hashable {
        /// The one that its path names; the public one if it names none.
        case ofPath
        /// The public one, whatever its path says.
        case onlyPublic
    }

    /// What becomes of a user token.
    enum Tokens: Sendable, Hashable {
        /// The answer takes the next one along.
        case renewed
        /// It ends with the call.
        case ended
    }

    let callers: Callers
    let databases: Databases
    let tokens: Tokens
    /// What the call does.
    let effect: RelayRoute.Effect

    /// Whether a user is needed for `request`.
    func needsUser(of request: RelayRequest) -> Bool {
        switch callers {
        case .known: false
        case .users: true
        case .owners:
            // A word that is no database is refused as that.
            ["private", "shared"].contains(request.parameters["database"])
        }
    }

    /// The database of `request`.
    ///
    /// - Throws: 400 if there is no such database.
    func database(of request: RelayRequest) throws(APIError) -> DatabaseScope {
        guard databases == .ofPath, request.parameters["database"] != nil else { return .public }
        return try request.choice("database")
    }
}

/// A client's call that was let in.
struct AdmittedCaller: Sendable {
    /// The settings of the container that the call is for.
    let settings: ContainerSettings
    /// The database that it is for.
    let database: DatabaseScope
    /// Who makes it.
    let caller: Caller
    /// Where the user signs in, who is to come back to the page that asks.
    let redirectURL: String

    /// The user on whose behalf the call is made.
    func user() throws(AuthenticationRefusal) -> UserID {
        try caller.requiredUser(redirectURL: redirectURL)
    }

    /// Who it is whose turn to read has to come.
    var party: QueryParty {
        guard caller.proof == .apiToken else { return .server }
        return caller.user.map { .user($0) } ?? .strangers
    }
}

extension ContainerRegistry {
    /// The settings of a container.
    ///
    /// - Throws: 404 if it is unknown.
    func settings(of key: ContainerKey) async throws -> ContainerSettings {
        guard let settings = try await container(key) else {
            throw APIError(
                .notFound,
                "there is no container \(key.container) in \(key.environment.rawValue)")
        }
        return settings
    }

    /// The settings of the container that the path names.
    ///
    /// - Throws: 404 if it is unknown.
    func settings(in request: RelayRequest) async throws -> ContainerSettings {
        try await settings(of: request.containerKey())
    }

    /// The key of the container that the path names.
    ///
    /// - Throws: 404 if it is unknown.
    func key(in request: RelayRequest) async throws -> ContainerKey {
        try await settings(in: request).key
    }
}

extension RelayAnswer {
    /// Hands clients a user token for the next request, as CloudKit's expect: a fresh one of the
    /// session, or, where the container has no sessions, theirs back.
    func handing(over token: String?, to request: RelayRequest) -> RelayAnswer {
        guard let token, token.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else { return self }
        var answer = self
        answer.headers[.webAuthToken] = token
        if request.query["ckSession"] != nil { answer.headers[.session] = token }
        return answer
    }
}
