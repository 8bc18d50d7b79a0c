import Crypto
package import RelayModel
package import Storage

/// The known state of a user token's session.
package struct SessionStanding: Sendable, Hashable {
    /// The secret of the store's session tokens.
    package let secret: [UInt8]
    /// The ID of the token's session.
    package let id: UUIDBytes
    /// The session; `nil` if it never began, or was forgotten.
    package var session: UserSession?
    /// The IDs, in the form of session tokens, of the keys that verify the container's user tokens.
    var keys: [[UInt8]] = []

    /// Creates a standing from what is known.
    package init(secret: [UInt8], id: UUIDBytes, session: UserSession?) {
        self.secret = secret
        self.id = id
        self.session = session
    }

    /// Returns the ID of the session of a token that is not verified yet.
    ///
    /// For a token of an identity provider, it is a digest of the signed bytes. So the token always
    /// belongs to the same session, and signing out ends all uses of it. The signature is left out,
    /// because an ECDSA signature has a second valid form, which anyone can compute.
    package static func sessionID(of token: String) -> UUIDBytes? {
        if SessionToken.isOne(token) { return SessionToken(token)?.session }
        guard let parts = try? SplitToken(token) else { return nil }
        return UUIDBytes(bytes: Array(SHA256.hash(data: parts.signedBytes).prefix(16)))
    }
}

extension Authenticator {
    /// Returns the user of a token, whether it is the relay's own or an identity provider's.
    ///
    /// - Throws: ``AuthenticationRefusal``; a token that has expired or was revoked requires
    ///   another sign-in.
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
                .claim(
                    userTokens.userClaim,
                    "is the record name of a server-to-server key, not of a user"))
        }
        // Without a known session no token is valid.
        guard let session, session.session?.revokedAt == nil else {
            throw .userTokenExpired(redirectURL: redirectURL)
        }
        return user
    }

    /// Returns whether a user name is the identity under which servers with a key create records.
    ///
    /// The name is visible in those records, and an identity provider may let people choose their
    /// names. A person with that name would be the creator of all of them.
    private func isOfKey(_ user: UserID) -> Bool {
        user.rawValue.utf8.first == UInt8(ascii: "_")
            && keys.contains { key in
                key.kind == .serverToServer
                    && Caller.identity(ofKey: key.id, container: settings.key) == user
            }
    }

    /// Returns the identity provider's token of `request` after verifying its signature; `nil` if
    /// `key` does not admit users, or the request has no such token.
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

    /// Verifies a token, unless it was verified before under the same settings.
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
            // A holder of a key that was replaced could have begun sessions with it.
            let key = token.key, session.keys.contains(key)
        else { throw .userTokenExpired(redirectURL: redirectURL) }
        return known.user
    }

    /// Returns the user token in the parameters of CloudKit's clients.
    static func cloudKitUserToken(of request: RelayRequest) -> String? {
        let tokens = ["ckWebAuthToken", "ckSession"].compactMap { request.query[$0] }
        return tokens.first { !$0.isEmpty && $0 != "null" }
    }
}
