package import RelayModel

/// The tokens of administrators, and the audit log of administrative calls.
package protocol AdministrationRegistry: Sendable {
    /// Saves an administrative token.
    func save(_ token: AdminToken) async throws
    /// Returns all tokens, newest first, including revoked ones.
    func adminTokens() async throws -> [AdminToken]
    /// Returns the token with this verifier, or `nil` if there is none.
    func adminToken(verifier: String) async throws -> AdminToken?
    /// Revokes a token and returns whether there was one that was not revoked.
    func revokeAdminToken(_ id: String, at now: Timestamp) async throws -> Bool

    /// Records an administrative call durably and returns its number.
    func beginAudit(_ entry: AuditEntry) async throws -> Int64
    /// Records how a call ended.
    func endAudit(_ id: Int64, status: Int, code: String?) async throws
    /// Returns the calls before `id` in descending order, at most `limit`.
    func auditEntries(before id: Int64?, limit: Int) async throws -> [AuditEntry]
    /// Deletes the calls before `cutoff`, and beyond `most` the oldest calls of the callers that
    /// have most.
    ///
    /// Returns the number of deleted calls.
    func pruneAudit(before cutoff: Timestamp, most: Int) async throws -> Int
}

/// An administrative token with fewer rights than the one in the configuration.
package struct AdminToken: Sendable, Hashable {
    /// The name in lists.
    package var id: String
    /// SHA-256 of the token in hexadecimal digits.
    package var verifier: String
    /// The label that people gave it.
    package var label: String
    /// Whether the token may change anything, or only read.
    package var mayChange: Bool
    /// The container and environment that the token is valid for; `nil` for all.
    package var container: ContainerKey?
    /// The moment of creation.
    package var createdAt: Timestamp
    /// The moment at which it expires; `nil` for never.
    package var endsAt: Timestamp?
    /// The moment of revocation, if it was revoked.
    package var revokedAt: Timestamp?

    package init(
        id: String, verifier: String, label: String, mayChange: Bool, container: ContainerKey?,
        createdAt: Timestamp, endsAt: Timestamp?
    ) {
        self.id = id
        self.verifier = verifier
        self.label = label
        self.mayChange = mayChange
        self.container = container
        self.createdAt = createdAt
        self.endsAt = endsAt
    }

    /// Returns whether the token is valid at `now`.
    package func isLive(at now: Timestamp) -> Bool {
        revokedAt == nil && endsAt.map { now < $0 } ?? true
    }
}

/// One administrative call.
///
/// Neither bodies nor parameters are kept, because they can contain secrets.
package struct AuditEntry: Sendable, Hashable {
    /// The number; 0 before the store assigns one.
    package var id: Int64 = 0
    /// The moment at which the call came.
    package var at: Timestamp
    /// The name of the caller's token.
    package var caller: String
    /// The HTTP method.
    package var method: String
    /// The path, without parameters.
    package var path: String
    /// The status of the answer; `nil` if it is unknown how the call ended.
    package var status: Int?
    /// The error code, if the call was refused.
    package var code: String?

    /// Creates the entry of a call that begins.
    package init(at: Timestamp, caller: String, method: String, path: String) {
        self.at = at
        self.caller = caller
        self.method = method
        self.path = path
    }
}
