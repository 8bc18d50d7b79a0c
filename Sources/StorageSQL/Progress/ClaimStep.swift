import RelayModel
import Storage

/// Claims once subscriptions for one change.
struct ClaimStep {
    let position: LogPosition

    func run(_ serials: [UInt64], in commit: OpenCommit) throws -> Set<UInt64> {
        // A version that ended elsewhere, by deletion, may still be owed earlier changes.
        let claim = try commit.db.cachedStatement(
            sql: """
                INSERT INTO onceClaim (subscription, position)
                SELECT serial, ?2 FROM subscription
                WHERE serial = ?1 AND activation < ?2 AND (ended IS NULL OR ended >= ?2)
                ON CONFLICT DO NOTHING
                """)
        let end = try commit.db.cachedStatement(
            sql: """
                UPDATE subscription SET ended = ?2
                WHERE serial = ?1 AND (ended IS NULL OR ended > ?2)
                """)
        let holder = try commit.db.cachedStatement(
            sql: "SELECT position FROM onceClaim WHERE subscription = ?")
        var claimed: Set<UInt64> = []
        for serial in serials {
            let arguments: StatementArguments = [serial.stored, position.stored]
            if try claim.executeCounting(arguments: arguments) > 0 {
                try end.execute(arguments: arguments)
                claimed.insert(serial)
            } else if try Int64.fetchOne(holder, arguments: [serial.stored]) == position.stored {
                claimed.insert(serial)
            }
        }
        return claimed
    }
}
