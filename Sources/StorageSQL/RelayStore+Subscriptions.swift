package import RelayModel
package import Storage

extension RelayStore {
    package func edit(
        _ edits: [SubscriptionEdit], of owner: SubscriptionOwner, atomicity: EditAtomicity,
        at now: Timestamp
    ) async throws -> [SubscriptionEditOutcome] {
        guard !edits.isEmpty else { return [] }
        let outcomes = try await write(
            edits, atomicity, of: owner.container, from: ()
        ) { edits, _, commit in
            let container = try commit.container(owner.container)
            let step = SubscriptionStep(
                owner: owner, container: container,
                user: try commit.db.user(owner.user, of: container), now: now)
            return try step.run(edits, atomicity, in: &commit)
        }
        if edits.contains(where: \.isOfSaved) { releases.signal() }
        for case .overQuota(let refusal) in outcomes { quotaTally.count(refusal.quota) }
        return outcomes
    }

    package func subscriptions(
        of owner: SubscriptionOwner
    ) async throws -> [SubscriptionVersion] {
        try await subscriptions(of: owner, and: "TRUE", [])
    }

    package func subscription(
        _ id: SubscriptionID, of owner: SubscriptionOwner
    ) async throws -> SubscriptionVersion? {
        try await subscriptions(of: owner, and: "subscriptionID = ?", [id.rawValue]).first
    }

    package func subscriptions(
        named ids: [SubscriptionID], of owner: SubscriptionOwner, bytes: Int
    ) async throws -> (found: [SubscriptionVersion], unread: Set<SubscriptionID>) {
        try await read { [unreadable] db in
            try Self.subscriptions(named: ids, of: owner, bytes: bytes, unreadable, in: db)
        }
    }

    /// The maximum number of subscriptions looked up together.
    ///
    /// It is low because one may be as large as a request.
    private static let namedTogether = 16

    static func subscriptions(
        named ids: [SubscriptionID], of owner: SubscriptionOwner, bytes: Int,
        _ unreadable: UnreadableRows, in db: Database
    ) throws -> (found: [SubscriptionVersion], unread: Set<SubscriptionID>) {
        let statement = try db.cachedStatement(sql: "\(active) AND subscriptionID = ?")
        let place = arguments(of: owner)
        var found: [SubscriptionVersion] = []
        var bodies = SubscriptionRows()
        var room = bytes
        // On PostgreSQL, several IDs are looked up in one batch.
        let portion = db.dialect == .postgresql ? namedTogether : 1
        for start in stride(from: 0, to: ids.count, by: portion) {
            guard room > 0 else { return (found, Set(ids[start...])) }
            let asked = ids[start...].prefix(portion)
            let rows = try Row.fetchFirsts(
                statement,
                arguments: asked.map { id -> StatementArguments in place + [id.rawValue] })
            for (index, row) in zip(asked.indices, rows) {
                guard room > 0 else { return (found, Set(ids[index...])) }
                guard let row else { continue }
                room -= row.bytes(of: "body")
                let version = try unreadable.value(of: row, in: "subscription") {
                    try bodies.version($0)
                }
                if let version { found.append(version) }
            }
        }
        return (found, [])
    }

    package func subscriptions(
        activeAt position: LogPosition, after serial: UInt64, limit: Int
    ) async throws -> [SubscriptionVersion] {
        try await versions(in: .subscription, activeAt: position, after: serial, limit) {
            var rows = SubscriptionRows()
            return { try rows.version($0) }
        }
    }

    package func subscriptions(_ serials: [UInt64]) async throws -> [SubscriptionVersion] {
        guard !serials.isEmpty else { return [] }
        return try await read { [unreadable] db in
            let version = try db.cachedStatement(
                sql: "\(VersionTable.subscription.select()) WHERE serial = ?")
            let rows = try Row.fetchFirsts(
                version, arguments: serials.map { serial -> StatementArguments in [serial.stored] }
            ).compactMap { $0 }
            return try unreadable.readable(rows, in: "subscription") {
                try SubscriptionVersion(row: $0)
            }
        }
    }

    private func subscriptions(
        of owner: SubscriptionOwner, and condition: String, _ arguments: StatementArguments
    ) async throws -> [SubscriptionVersion] {
        try await read { [unreadable] db in
            let rows = try Row.fetchAll(
                db, sql: "\(Self.active) AND \(condition) ORDER BY subscriptionID",
                arguments: Self.arguments(of: owner) + arguments)
            return try unreadable.readable(rows, in: "subscription") {
                try SubscriptionVersion(row: $0)
            }
        }
    }

    /// Selects the active subscriptions of one owner.
    ///
    /// The parameters are ``arguments(of:)``.
    private static let active = """
        SELECT subscription.*, user.name AS ownerName, container.name AS containerName,
            container.environment
        FROM container
            JOIN user ON user.container = container.id
            JOIN subscription ON subscription.owner = user.id
        WHERE container.name = ? AND container.environment = ? AND user.name = ?
            AND database = ? AND ended IS NULL
        """

    private static func arguments(of owner: SubscriptionOwner) -> StatementArguments {
        [
            owner.container.container.rawValue, owner.container.environment.rawValue,
            owner.user.rawValue, owner.database.rawValue,
        ]
    }
}

private extension SubscriptionEdit {
    /// Whether the edit concerns a subscription that was saved before.
    var isOfSaved: Bool {
        switch self {
        case .create: false
        case .update, .delete: true
        }
    }
}
