import RelayModel
package import Storage
import Synchronization

extension RelayStore {
    package func health(of serials: Set<UInt64>) async throws -> [UInt64: SubscriptionHealth] {
        guard !serials.isEmpty else { return [:] }
        // Sums and blocks are read as of one commit, so that an event that moves from blocks to
        // sums is counted once.
        return try await read { try Self.health(of: serials, in: $0) }
    }

    /// Returns the health of these versions.
    ///
    /// A user may have ten thousand, so they are read in a batch to release the connection soon.
    static func health(
        of serials: Set<UInt64>, in db: Database
    ) throws -> [UInt64: SubscriptionHealth] {
        let asked = serials.sorted()
        let rows = try Row.fetchFirsts(
            db.cachedStatement(sql: "SELECT * FROM subscriptionHealth WHERE serial = ?"),
            arguments: asked.map { serial -> StatementArguments in [serial.stored] })
        var sums: [UInt64: SubscriptionHealth] = [:]
        for case (let serial, let row?) in zip(asked, rows) {
            sums[serial] = SubscriptionHealth(row: row)
        }
        var later: [UInt64: SubscriptionHealth] = [:]
        let blocks = try Row.fetchCursor(
            db, sql: "SELECT id, body FROM firingBlock ORDER BY id")
        while let row = try blocks.next() {
            try FiringBlock.add(row, to: &later) { serials.contains($0) }
        }
        for (serial, health) in later {
            sums[serial, default: SubscriptionHealth()].add(health)
        }
        return sums
    }

    package func addUpFirings() async throws -> Bool {
        let step = try await read { try HealthStep($0) }
        guard step.count > 0 else { return false }
        try await write { commit in try step.run(in: commit.db) }
        let left = notAddedUp.subtract(step.count, ordering: .relaxed).newValue
        // Blocks from before the start were not counted.
        if left < 0 { notAddedUp.store(0, ordering: .relaxed) }
        return step.isCut
    }

    package var firingsNotAddedUp: Int { notAddedUp.load(ordering: .relaxed) }
}
