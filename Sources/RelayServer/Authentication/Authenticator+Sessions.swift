import Crypto
package import RelayModel
package import Storage

/// What is known of the session of a user token.
package struct SessionStanding: Sendable, Hashable {
    /// The secret of the store's session tokens.
    package let secret: [UInt8]
    /// The ID of the token's session.
    package let id: UUIDBytes
    /// The session; `nil` if it never began, or has been forgotten.
    package var session: UserSession?
    /// How tokens of sessions name the keys by which the container's user tokens are verified.
    var keys: [[UInt8]] = []

    /// Collects what is known.
    package init(secret: [UInt8], id: UUIDBytes, session: UserSession?) {
        self.secret = secret
        self.id = id
        self.session = session
    }

    /// The session that a token belongs to, before anybody has believed it.
    ///
    /// A token of an identity provider names its session by the digest of what was signed, so that
    /// it begins the same one whenever it comes, and signing out ends them together. The signature
    /// itself is left out: an ECDSA signature has a second form, which anybody can compute.
    package static func sessionID(of token: String) -> UUIDBytes? {
        if SessionToken.isOne(token) { return SessionToken(token)?.session }
        guard let parts = try? SplitToken(token) else { return nil }
        return UUIDBytes(bytes: Array(SHA256.hash(data: parts.signedBytes).prefix(16)))
    }
}

extension Authenticator {
    /// The user whom a token names, be it the relay's own or an identity provider's.
    ///
    /// - Throws: ``AuthenticationRefusal``; what ended or was revoked asks for signing in again.
    func user(of token: String, now: Timestamp) throws(AuthenticationRefusal) -> UserID {
        guard let userTokens = settings.userTokens else { throw .noUserTokenSettings }
        if SessionToken.isOne(token) { return try sessionUser(of: token, now: now) }
        let user: UserID
        do throws(UserTokenRefusal) {
            user = try verified(token, by: userTokens).user(at: now)
        } catch .expired {
            throw .userTokenExpired(redirectURL: redirectURL)
        } catch {
            throw .userToken(error)
        }
        guard !isOfKey(user) else {
            throw .userToken(
                .claim(userTokens.userClaim, "is that of a server-to-server key: nobody's"))
        }
        // Without knowing what became of its session no token counts.
        guard let session, session.session?.revokedAt == nil else {
            throw .userTokenExpired(redirectURL: redirectURL)
        }
        return user
    }

    /// Whether a name is that as which the servers with a key make records.
    ///
    /// It stands in these records, and an identity provider may let people choose their names: who
    /// chose that one would be the creator of all of them.
    private func isOfKey(_ user: UserID) -> Bool {
        user.rawValue.utf8.first == UInt8(ascii: "_")
            && keys.contains { key in
                key.kind == .serverToServer
                    && Caller.identity(ofKey: key.id, container: settings.key) == user
            }
    }

    /// The identity provider's token of `request`, once its signature has been verified; `nil` if
    /// `key` is none for users, or the request has no such token.
    ///
    /// - Throws: ``AuthenticationRefusal``.
    func verifiedToken(
        of request: RelayRequest, holding key: AccessKey
    ) throws(AuthenticationRefusal) -> VerifiedUserToken? {
        guard key.kind == .apiToken, let token = Self.userToken(of: request),
            !SessionToken.isOne(token)
        else { return nil }
        guard let userTokens = settings.userTokens else { throw .noUserTokenSettings }
        do {
            return try verified(token, by: userTokens)
        } catch {
            throw .userToken(error)
        }
    }

    /// The signature of a text stays good for as long as the settings say the same.
    private func verified(
        _ token: String, by userTokens: UserTokenSettings
    ) throws(UserTokenRefusal) -> VerifiedUserToken {
        if let verified, verified.isOf(token, by: userTokens) { return verified }
        return try UserTokenVerifier(userTokens).verify(token)
    }

    private func sessionUser(
        of text: String, now: Timestamp
    ) throws(AuthenticationRefusal) -> UserID {
        guard let token = SessionToken(text), let session,
            token.isSigned(by: session.secret, for: settings.key)
        else { throw .userToken(.signature) }
        guard settings.sessions != nil, let known = session.session, known.revokedAt == nil,
            now < token.expiresAt, now < known.endsAt,
            // Who has a key that was replaced could have begun sessions with it.
            let key = token.key, session.keys.contains(key)
        else { throw .userTokenExpired(redirectURL: redirectURL) }
        return known.user
    }

    /// The user token as CloudKit's clients send it.
    static func cloudKitUserToken(of request: RelayRequest) -> String? {
        let tokens = ["ckWebAuthToken", "ckSession"].compactMap { request.query[$0] }
        return tokens.first { !$0.isEmpty && $0 != "null" }
    }
}
