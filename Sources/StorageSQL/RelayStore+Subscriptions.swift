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
            let rows = try serials.compactMap {
                try Row.fetchOne(version, arguments: [$0.stored])
            }
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
                db,
                sql: """
                    SELECT subscription.*, user.name AS ownerName, container.name AS containerName,
                        container.environment
                    FROM container
                        JOIN user ON user.container = container.id
                        JOIN subscription ON subscription.owner = user.id
                    WHERE container.name = ? AND container.environment = ? AND user.name = ?
                        AND database = ? AND ended IS NULL AND \(condition)
                    ORDER BY subscriptionID
                    """,
                arguments: [
                    owner.container.container.rawValue, owner.container.environment.rawValue,
                    owner.user.rawValue, owner.database.rawValue,
                ] + arguments)
            return try unreadable.readable(rows, in: "subscription") {
                try SubscriptionVersion(row: $0)
            }
        }
    }
}

private extension SubscriptionEdit {
    /// Whether it is about a subscription that was saved before.
    var isOfSaved: Bool {
        switch self {
        case .create: false
        case .update, .delete: true
        }
    }
}
