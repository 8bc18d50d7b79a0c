package import RelayModel

/// The sessions of signed-in users, which say whether a session token is still valid.
package protocol SessionRegistry: Sendable {
    /// Returns the 32-byte secret with which session tokens are signed.
    ///
    /// Every store has its own.
    func sessionSecret() async throws -> [UInt8]
    /// Returns a session, or `nil` if there is none with this ID.
    func session(_ id: UUIDBytes, of container: ContainerKey) async throws -> UserSession?
    /// Starts a session, or restarts it if it has expired.
    ///
    /// A revoked session stays revoked.
    ///
    /// A user has at most ``RelayModel/Limits/maximumSessionsPerUser`` sessions. Beyond that, the
    /// oldest end.
    func startSession(_ session: UserSession) async throws -> UserSession
    /// Revokes a session, as at sign-out.
    ///
    /// An unknown session is stored as revoked, so that the token it would be made from is not
    /// accepted later either.
    func revokeSession(_ session: UserSession, at now: Timestamp) async throws
    /// Revokes every session of a user and returns their number.
    func revokeSessions(of owner: InboxOwner, at now: Timestamp) async throws -> Int
    /// Returns the sessions of a container, or of one of its users, that have not ended at `now`,
    /// newest first.
    func sessions(
        of container: ContainerKey, user: UserID?, at now: Timestamp, limit: Int
    ) async throws -> [UserSession]
    /// Deletes sessions that have ended at `now`, at most `limit`, and returns their number.
    func pruneSessions(at now: Timestamp, limit: Int) async throws -> Int
    /// Remembers that a signature was used, until it is too old to be accepted, and returns whether
    /// this was its first use.
    ///
    /// `nonce` is 32 bytes that no other signature has.
    func useSignature(
        _ nonce: [UInt8], of container: ContainerKey, until: Timestamp, at now: Timestamp
    ) async throws -> Bool
}

/// The time for which one user is signed in.
package struct UserSession: Sendable, Hashable {
    /// The session ID.
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
    /// When the identity provider's token that began the session expires; `nil` if that is unknown.
    ///
    /// A revoked session is remembered until then, so that the token cannot begin another session.
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
