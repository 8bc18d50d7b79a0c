import RelayModel
package import Storage

/// Finds out who is calling: a pure decision over the request, the container's settings and keys.
///
/// It reads no clock and no database: ``RelayRequest/receivedAt`` is the moment, and the shell
/// fetched what is here.
package struct Authenticator: Sendable {
    /// The container's settings.
    let settings: ContainerSettings
    /// The container's keys, revoked ones included.
    let keys: [AccessKey]
    /// Where users sign in.
    let redirectURL: String
    /// What is known of the session of the request's user token.
    var session: SessionStanding?
    /// The identity provider's token whose signature has been verified before.
    var verified: VerifiedUserToken?

    /// Decides for one container.
    package init(
        settings: ContainerSettings, keys: [AccessKey], redirectURL: String,
        session: SessionStanding? = nil
    ) {
        self.settings = settings
        self.keys = keys
        self.redirectURL = redirectURL
        self.session = session
    }

    /// The caller of `request`, who was recognized by `key` and asks for `database`.
    ///
    /// - Throws: ``AuthenticationRefusal`` that names the part that failed.
    func caller(
        of request: RelayRequest, database: DatabaseScope, holding key: AccessKey
    ) throws(AuthenticationRefusal) -> Caller {
        if key.kind == .serverToServer { try verifySignature(of: request, database: database) }
        return try caller(holding: key, request)
    }

    /// The key with which `request` is made, as far as its head shows: a signature over the body is
    /// not verified, and the user is not looked for.
    ///
    /// - Throws: ``AuthenticationRefusal`` for whoever would be refused whatever the body is.
    func recognizeKey(
        of request: RelayRequest
    ) throws(AuthenticationRefusal) -> AccessKey {
        let apiToken = Self.apiToken(of: request)
        if let signature = try signature(of: request) {
            guard apiToken == nil else { throw .mixedCredentials }
            do {
                return try signature.key(at: request.receivedAt, among: keys)
            } catch {
                throw .signature(error)
            }
        }
        let found: AccessKey
        if let apiToken {
            guard let key = key(.apiToken, secret: apiToken) else { throw .unknownAPIToken }
            found = key
        } else if let bearer = Self.bearer(request) {
            guard let key = key(.bearer, secret: bearer) else { throw .unknownBearerKey }
            found = key
        } else {
            throw .noCredentials
        }
        guard found.revokedAt == nil else { throw .revokedKey(label: found.label) }
        return found
    }

    // MARK: The three ways

    private func signature(
        of request: RelayRequest
    ) throws(AuthenticationRefusal) -> ServerSignature? {
        do {
            return try ServerSignature(request)
        } catch {
            throw .signature(error)
        }
    }

    /// A server-to-server key is good for the public database only, as the key's own identity.
    private func verifySignature(
        of request: RelayRequest, database: DatabaseScope
    ) throws(AuthenticationRefusal) {
        do {
            try ServerSignature(request)?.verify(request, keys: keys)
        } catch {
            throw .signature(error)
        }
        guard database == .public else {
            throw .notAllowed(
                "a server-to-server key may use the public database only, not the "
                    + "\(database.rawValue) one")
        }
    }

    /// Who makes `request` with `key`, be it the user of a token or one that a server names.
    ///
    /// - Throws: ``AuthenticationRefusal``.
    func caller(
        holding key: AccessKey, _ request: RelayRequest
    ) throws(AuthenticationRefusal) -> Caller {
        let proof: Caller.Proof
        let user: UserID?
        switch key.kind {
        case .apiToken: (proof, user) = (.apiToken, try signedInUser(request))
        case .bearer: (proof, user) = (.bearerKey(id: key.id), try namedUser(request))
        case .serverToServer:
            let identity = Caller.identity(ofKey: key.id, container: settings.key)
            (proof, user) = (.signature(keyID: key.id), identity)
        }
        return Caller(container: settings.key, proof: proof, user: user)
    }

    /// The user whose token a client sends along.
    private func signedInUser(_ request: RelayRequest) throws(AuthenticationRefusal) -> UserID? {
        guard let token = Self.userToken(of: request) else { return nil }
        return try user(of: token, now: request.receivedAt)
    }

    /// The user for whom a server says that it acts.
    private func namedUser(_ request: RelayRequest) throws(AuthenticationRefusal) -> UserID? {
        guard let name = request.header("X-Belfry-User") else { return nil }
        guard !request.isRepeated("X-Belfry-User") else {
            throw .badUserHeader("is there twice")
        }
        // What is no UTF-8 was read as U+FFFD, and many names as the same one.
        guard !name.unicodeScalars.contains("\u{FFFD}") else {
            throw .badUserHeader("its bytes are no UTF-8")
        }
        guard let named = UserID(rawValue: name) else {
            throw .badUserHeader("not \(UserID.rule)")
        }
        return named
    }

    /// Compares with every key of the kind, so that the time does not tell which one was near.
    private func key(_ kind: AccessKey.Kind, secret: String) -> AccessKey? {
        let verifier = Secrets.verifier(of: secret)
        var found: AccessKey?
        for key in keys
        where key.kind == kind && ConstantTime.equal(key.verifier.utf8, verifier.utf8) {
            if found == nil || found?.revokedAt != nil { found = key }
        }
        return found
    }

    // MARK: What the request brings

    /// The container's API token, with which alone a user token counts.
    static func apiToken(of request: RelayRequest) -> String? {
        present(request.query["ckAPIToken"] ?? request.header("ckAPIToken"))
    }

    /// The user token: CloudKit's parameter, or the header of everybody else.
    static func userToken(of request: RelayRequest) -> String? {
        present(request.query["ckWebAuthToken"]) ?? present(request.query["ckSession"])
            ?? bearer(request)
    }

    private static func bearer(_ request: RelayRequest) -> String? {
        guard let value = request.header("Authorization"),
            value.prefix("bearer ".count).lowercased() == "bearer "
        else { return nil }
        return present(String(value.dropFirst("bearer ".count).drop { $0 == " " }))
    }

    /// CloudKit JS sends the literal `null` while nobody is signed in.
    private static func present(_ value: String?) -> String? {
        guard let value, !value.isEmpty, value != "null" else { return nil }
        return value
    }
}

extension Caller {
    /// The user on whose behalf the call is made, where one is needed.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says how to name one.
    func requiredUser(redirectURL: String) throws(AuthenticationRefusal) -> UserID {
        if let user { return user }
        switch proof {
        case .apiToken: throw .userRequired(redirectURL: redirectURL)
        case .bearerKey, .signature:
            throw .badUserHeader("is required here: it names the user for whom the server acts")
        }
    }
}
