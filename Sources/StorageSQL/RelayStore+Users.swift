extension RelayStore {
    package func pruneUsers(
        after number: Int64, among count: Int
    ) async throws -> (next: Int64?, deleted: Int) {
        let (last, hasIdle) = try await read { db -> (Int64?, Bool) in
            let last = try Int64.fetchOne(
                db.cachedStatement(sql: Self.lastOfUsers), arguments: [number, max(1, count)])
            guard let last else { return (nil, false) }
            let idle = try Int64.fetchOne(
                db.cachedStatement(sql: Self.firstIdleUser), arguments: [number, last])
            return (last, idle != nil)
        }
        guard let last, hasIdle else { return (last, 0) }
        let deleted = try await write { commit in
            _ = try commit.db.deleteRows(
                of: "quotaUse", by: ["quotaUse.container", "thing", "holder"], Self.uses,
                [number, last])
            return try commit.db.cachedStatement(sql: Self.forgetUsers)
                .executeCounting(arguments: [number, last])
        }
        return (last, deleted)
    }

    /// The last of the next users, by their numbers.
    static let lastOfUsers = """
        SELECT max(id) FROM (SELECT id FROM user WHERE id > ? ORDER BY id LIMIT ?) AS next
        """

    /// The first of some users whom nothing refers to.
    static let firstIdleUser = "SELECT min(id) FROM user WHERE \(idle)"

    /// Deletes some users whom nothing refers to.
    static let forgetUsers = "DELETE FROM user WHERE \(idle)"

    /// Selects the counts of subscriptions and devices of these users, which are zero.
    static let uses = """
        JOIN user ON user.container = quotaUse.container AND holder = CAST(user.id AS TEXT)
        WHERE thing IN (1, 2) AND \(idle)
        """

    /// Selects users between two numbers whom no row refers to.
    ///
    /// A user's row is written in the transaction of the row that refers to it, so it need not have
    /// some age. The user with the highest number stays, because its number would be given again.
    private static let idle =
        "user.id > ?1 AND user.id <= ?2 AND user.id < (SELECT max(id) FROM user)"
        + referring.map { " AND NOT EXISTS (SELECT 1 FROM \($0) WHERE \($0).owner = user.id)" }
        .joined()

    /// The tables with a column `owner` that refers to users.
    private static let referring = [
        "subscription", "device", "userSession", "inbox", "badge", "courierNotification",
        "clientReceipt", "disabledSubscription", "pastSubscription", "pastDevice",
    ]
}
