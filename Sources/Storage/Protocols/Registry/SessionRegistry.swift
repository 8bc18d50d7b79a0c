package import RelayModel

/// The sessions in which users call: whether the tokens of one still count.
package protocol SessionRegistry: Sendable {
    /// The secret with which session tokens are signed, 32 bytes; every store has its own.
    func sessionSecret() async throws -> [UInt8]
    /// A session; `nil` if there is none with this ID.
    func session(_ id: UUIDBytes, of container: ContainerKey) async throws -> UserSession?
    /// Starts a session, or starts it anew if it has ended by itself; one that was revoked stays
    /// revoked.
    ///
    /// A user has ``RelayModel/Limits/maximumSessionsPerUser`` at most; beyond, the oldest end.
    func startSession(_ session: UserSession) async throws -> UserSession
    /// Revokes a session, as at sign-out; one that is not known yet is kept as revoked, so that
    /// what it would be made of does not count any more either.
    func revokeSession(_ session: UserSession, at now: Timestamp) async throws
    /// Revokes every session of a user; returns how many.
    func revokeSessions(of owner: InboxOwner, at now: Timestamp) async throws -> Int
    /// The sessions of a container that have not ended at `now`, the newest first; of one user if
    /// `user` is not `nil`.
    func sessions(
        of container: ContainerKey, user: UserID?, at now: Timestamp, limit: Int
    ) async throws -> [UserSession]
    /// Deletes sessions that have ended at `now`; returns how many, at most `limit`.
    func pruneSessions(at now: Timestamp, limit: Int) async throws -> Int
    /// Remembers that a signature was used, until it is too old to be used again; says whether this
    /// was the first time. The nonce are 32 bytes that no other signature has.
    func useSignature(
        _ nonce: [UInt8], of container: ContainerKey, until: Timestamp, at now: Timestamp
    ) async throws -> Bool
}

/// One user's time of being signed in.
package struct UserSession: Sendable, Hashable {
    /// The session.
    package var id: UUIDBytes
    /// The container and environment.
    package var container: ContainerKey
    /// The user.
    package var user: UserID
    /// When it began.
    package var startedAt: Timestamp
    /// When it ends, however often its tokens are renewed.
    package var endsAt: Timestamp
    /// When it was revoked, if it was.
    package var revokedAt: Timestamp?
    /// When the identity provider's token ends from which it began; `nil` if that is not known.
    ///
    /// A session that was revoked is remembered until then, so that the token begins no other one.
    package var tokenEndsAt: Timestamp?

    package init(
        id: UUIDBytes, container: ContainerKey, user: UserID, startedAt: Timestamp,
        endsAt: Timestamp, revokedAt: Timestamp? = nil, tokenEndsAt: Timestamp? = nil
    ) {
        self.id = id
        self.container = container
        self.user = user
        self.startedAt = startedAt
        self.endsAt = endsAt
        self.revokedAt = revokedAt
        self.tokenEndsAt = tokenEndsAt
    }
}
