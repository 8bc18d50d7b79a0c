import RelayModel
package import Storage

/// Determines the caller: a pure decision over the request, the container's settings and its keys.
///
/// It reads neither the clock nor the database: the time is ``RelayRequest/receivedAt``, and the
/// caller of this type has fetched the rest.
package struct Authenticator: Sendable {
    /// The container's settings.
    let settings: ContainerSettings
    /// The container's keys, revoked ones included.
    let keys: [AccessKey]
    /// The URL at which users sign in.
    let redirectURL: String
    /// The known state of the session of the request's user token.
    var session: SessionStanding?
    /// The identity provider's token, if its signature was verified before.
    var verified: VerifiedUserToken?

    /// Creates an authenticator for one container.
    package init(
        settings: ContainerSettings, keys: [AccessKey], redirectURL: String,
        session: SessionStanding? = nil
    ) {
        self.settings = settings
        self.keys = keys
        self.redirectURL = redirectURL
        self.session = session
    }

    /// Returns the caller of `request`, whose key is `key`, for a call on `database`.
    ///
    /// - Throws: ``AuthenticationRefusal`` that names the part that failed.
    func caller(
        of request: RelayRequest, database: DatabaseScope, holding key: AccessKey
    ) throws(AuthenticationRefusal) -> Caller {
        if key.kind == .serverToServer { try verifySignature(of: request, database: database) }
        return try caller(holding: key, request)
    }

    /// Returns the key of `request`, as far as its head shows.
    ///
    /// A signature over the body is not verified, and the user is not determined.
    ///
    /// - Throws: ``AuthenticationRefusal`` for a request that would be refused with any body.
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

    /// Verifies a server-to-server signature, which is valid only for the public database.
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

    /// Returns the caller of `request` with `key`: the user of a token, or one that a server names.
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
            guard !request.hasHeader("X-Belfry-User") else {
                throw .badUserHeader("is for bearer keys; a server-to-server key acts as itself")
            }
            let identity = Caller.identity(ofKey: key.id, container: settings.key)
            (proof, user) = (.signature(keyID: key.id), identity)
        }
        return Caller(container: settings.key, proof: proof, user: user)
    }

    /// Returns the user whose token the client sent.
    private func signedInUser(_ request: RelayRequest) throws(AuthenticationRefusal) -> UserID? {
        guard let token = Self.userToken(of: request) else { return nil }
        return try user(of: token, now: request.receivedAt)
    }

    /// Returns the user for whom a server acts.
    private func namedUser(_ request: RelayRequest) throws(AuthenticationRefusal) -> UserID? {
        guard let name = request.header("X-Belfry-User") else {
            // An empty name is not "no user": the server meant somebody, and would act as itself.
            guard !request.hasHeader("X-Belfry-User") else {
                throw .badUserHeader("is empty, and not \(UserID.rule)")
            }
            return nil
        }
        guard !request.isRepeated("X-Belfry-User") else {
            throw .badUserHeader("is given twice")
        }
        // Bytes that are not UTF-8 were decoded as U+FFFD, so that different names would become
        // equal.
        guard !name.unicodeScalars.contains("\u{FFFD}") else {
            throw .badUserHeader("is not UTF-8")
        }
        guard let named = UserID(rawValue: name) else {
            throw .badUserHeader("is not \(UserID.rule)")
        }
        return named
    }

    /// Returns the key with a secret.
    ///
    /// It compares the secret with every key of the kind, so that the time reveals nothing.
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

    /// Returns the container's API token, without which a user token is not valid.
    static func apiToken(of request: RelayRequest) -> String? {
        present(request.query["ckAPIToken"] ?? request.header("ckAPIToken"))
    }

    /// Returns the user token: CloudKit's parameter, or the usual `Authorization` field.
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

    /// Returns a value that is not empty; CloudKit JS sends the text `null` while no user is signed
    /// in.
    private static func present(_ value: String?) -> String? {
        guard let value, !value.isEmpty, value != "null" else { return nil }
        return value
    }
}

extension Caller {
    /// Returns the user for whom the call is made, if one is needed.
    ///
    /// - Throws: ``AuthenticationRefusal`` that says how to name a user.
    func requiredUser(redirectURL: String) throws(AuthenticationRefusal) -> UserID {
        if let user { return user }
        switch proof {
        case .apiToken: throw .userRequired(redirectURL: redirectURL)
        case .bearerKey, .signature:
            throw .badUserHeader("is required here: it names the user for whom the server acts")
        }
    }
}
