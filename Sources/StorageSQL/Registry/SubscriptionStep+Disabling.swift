import RelayModel
import Storage

extension SubscriptionStep {
    /// The number of set-aside changes after which a subscription is disabled.
    static let mostStrikes = 3

    /// Gives the new version `serial` of a subscription the strikes of its predecessor, so that
    /// saving it again does not clear them: all strikes of the version that it replaces, or all but
    /// one of those by which it was disabled.
    ///
    /// A repaired condition causes no further strikes, and then the old ones have no effect.
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
        // The positions of the changes were deleted with the version, so positions before its end
        // stand for them.
        for number in 1..<Self.mostStrikes {
            try commit.db.cachedStatement(
                sql: """
                    INSERT INTO dearStrike (subscription, position) VALUES (?, ?)
                    ON CONFLICT DO NOTHING
                    """
            ).execute(arguments: [serial.stored, max(1, disabled.stored - Int64(number))])
        }
    }

    /// Returns whether a subscription is disabled.
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

    /// Deletes the record that a subscription was disabled and returns the position of that, if
    /// there was one.
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

    /// Returns whether the user had a disabled subscription in the database at the beginning of the
    /// request.
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
