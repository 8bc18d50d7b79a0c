import RelayModel
import Storage

/// Claims once subscriptions for one change.
struct ClaimStep {
    let position: LogPosition

    func run(_ serials: [UInt64], in commit: OpenCommit) throws -> Set<UInt64> {
        // A version that ended elsewhere, by deletion, may still be fired by earlier changes.
        let claim = try commit.db.cachedStatement(
            sql: """
                INSERT INTO onceClaim (subscription, position)
                SELECT serial, ?2 FROM subscription
                WHERE serial = ?1 AND activation < ?2 AND (ended IS NULL OR ended >= ?2)
                ON CONFLICT DO NOTHING RETURNING subscription
                """)
        let end = try commit.db.cachedStatement(
            sql: """
                UPDATE subscription SET ended = ?2
                WHERE serial = ?1 AND (ended IS NULL OR ended > ?2)
                """)
        let holder = try commit.db.cachedStatement(
            sql: "SELECT position FROM onceClaim WHERE subscription = ?")
        let asked = serials.map { (serial) -> StatementArguments in
            [serial.stored, position.stored]
        }
        let rows = try Row.fetchFirsts(claim, arguments: asked)
        var claimed: Set<UInt64> = []
        var others: [UInt64] = []
        for index in serials.indices {
            guard rows[index] != nil else {
                others.append(serials[index])
                continue
            }
            try end.execute(arguments: asked[index])
            claimed.insert(serials[index])
        }
        // This change may have claimed a subscription before a crash, after which it is walked
        // again.
        let held = others.map { (serial) -> StatementArguments in [serial.stored] }
        for (serial, row) in zip(others, try Row.fetchFirsts(holder, arguments: held)) {
            if let row, row[0] as Int64 == position.stored { claimed.insert(serial) }
        }
        return claimed
    }
}
