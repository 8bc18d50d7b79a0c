import FoundationEssentials
import RelayModel
import Storage

extension ReceiptBlock {
    /// Writes the block as a row.
    func insert(in db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO receiptBlock
                    (firstPosition, lastPosition, lastAt, outcomes, count, body)
                VALUES (?, ?, ?, ?, ?, ?)
                """)
        try statement.execute(arguments: [
            positions.lowerBound.stored, positions.upperBound.stored, lastAt.stored, outcomes,
            count, Data(body),
        ])
    }
}
