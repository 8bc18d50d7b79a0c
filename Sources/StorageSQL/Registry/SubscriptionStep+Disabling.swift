import RelayModel
import Storage

extension SubscriptionStep {
    /// After this many changes that were set aside for a subscription, it ends.
    static let mostStrikes = 3

    /// Lets the version `serial` of a subscription begin with the strikes of the one before it, so
    /// that nobody gets rid of them by saving it again: with all of those of the version that it
    /// replaces, or with all but one of those by which it was disabled.
    ///
    /// A condition that was mended is not named again, and then they mean nothing.
    func carryStrikes(
        to serial: UInt64, from replaced: UInt64?, orDisabled disabled: LogPosition?,
        in commit: OpenCommit
    ) throws {
        if let replaced {
            try commit.db.cachedStatement(
                sql: """
                    INSERT INTO dearStrike (subscription, position)
                    SELECT ?, position FROM dearStrike WHERE subscription = ?
                    """
            ).execute(arguments: [serial.stored, replaced.stored])
        }
        guard let disabled else { return }
        // Which changes they were is forgotten with the version: its end stands for them.
        for number in 1..<Self.mostStrikes {
            try commit.db.cachedStatement(
                sql: """
                    INSERT INTO dearStrike (subscription, position) VALUES (?, ?)
                    ON CONFLICT DO NOTHING
                    """
            ).execute(arguments: [serial.stored, max(1, disabled.stored - Int64(number))])
        }
    }

    /// Whether a subscription is disabled.
    func isDisabled(_ id: SubscriptionID, in commit: OpenCommit) throws -> Bool {
        guard try hasDisabled(in: commit) else { return false }
        let statement = try commit.db.cachedStatement(
            sql: """
                SELECT 1 FROM disabledSubscription
                WHERE owner = ? AND database = ? AND subscriptionID = ?
                """)
        return try Int.fetchOne(
            statement, arguments: [user, owner.database.rawValue, id.rawValue]) != nil
    }

    /// Forgets that a subscription was disabled; says where in the log that was, if it was.
    func forgetDisabled(_ id: SubscriptionID, in commit: OpenCommit) throws -> LogPosition? {
        guard try hasDisabled(in: commit) else { return nil }
        let statement = try commit.db.cachedStatement(
            sql: """
                DELETE FROM disabledSubscription
                WHERE owner = ? AND database = ? AND subscriptionID = ?
                RETURNING position
                """)
        return try Int64.fetchOne(
            statement, arguments: [user, owner.database.rawValue, id.rawValue]
        ).map { LogPosition(stored: $0) }
    }

    /// Whether any of the user's was disabled, as of the beginning of the request.
    private func hasDisabled(in commit: OpenCommit) throws -> Bool {
        if let known = together.hasDisabled { return known }
        let found = try Int.fetchOne(
            commit.db.cachedStatement(
                sql: """
                    SELECT 1 FROM disabledSubscription WHERE owner = ? AND database = ? LIMIT 1
                    """), arguments: [user, owner.database.rawValue])
        together.hasDisabled = found != nil
        return found != nil
    }
}
