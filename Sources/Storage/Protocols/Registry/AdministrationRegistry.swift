package import RelayModel

/// Who may administer the relay, and what was done.
package protocol AdministrationRegistry: Sendable {
    /// Saves a token of the administrative surface.
    func save(_ token: AdminToken) async throws
    /// Every token, the newest first, revoked ones included.
    func adminTokens() async throws -> [AdminToken]
    /// The token with this verifier; `nil` if there is none.
    func adminToken(verifier: String) async throws -> AdminToken?
    /// Revokes a token; returns whether there was a live one.
    func revokeAdminToken(_ id: String, at now: Timestamp) async throws -> Bool

    /// Notes an administrative call, durably; returns its number.
    func beginAudit(_ entry: AuditEntry) async throws -> Int64
    /// Notes how a call ended.
    func endAudit(_ id: Int64, status: Int, code: String?) async throws
    /// Calls by descending number, before `id`, at most `limit`.
    func auditEntries(before id: Int64?, limit: Int) async throws -> [AuditEntry]
    /// Deletes the calls from before `cutoff`, and beyond `most` the oldest of whoever has most;
    /// returns how many.
    func pruneAudit(before cutoff: Timestamp, most: Int) async throws -> Int
}

/// A token of the administrative surface that may do less than the one in the configuration.
package struct AdminToken: Sendable, Hashable {
    /// Its name in lists.
    package var id: String
    /// SHA-256 of the token in hexadecimal digits.
    package var verifier: String
    /// What people call it.
    package var label: String
    /// Whether it may change anything, or only read.
    package var mayChange: Bool
    /// The container and environment that it is good for; `nil` for all of them.
    package var container: ContainerKey?
    /// When it was made.
    package var createdAt: Timestamp
    /// When it stops being valid; `nil` for never.
    package var endsAt: Timestamp?
    /// When it was revoked, if it was.
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

    /// Whether it counts at `now`.
    package func isLive(at now: Timestamp) -> Bool {
        revokedAt == nil && endsAt.map { now < $0 } ?? true
    }
}

/// One administrative call.
///
/// Neither bodies nor parameters are kept, because secrets come in them.
package struct AuditEntry: Sendable, Hashable {
    /// Its number; 0 before it has one.
    package var id: Int64 = 0
    /// When it came.
    package var at: Timestamp
    /// Whose token it had.
    package var caller: String
    /// The method.
    package var method: String
    /// The path, without parameters.
    package var path: String
    /// The status of its answer; `nil` if it is not known how it ended.
    package var status: Int?
    /// The code of the error, if it was refused.
    package var code: String?

    /// Notes a call that begins.
    package init(at: Timestamp, caller: String, method: String, path: String) {
        self.at = at
        self.caller = caller
        self.method = method
        self.path = path
    }
}
