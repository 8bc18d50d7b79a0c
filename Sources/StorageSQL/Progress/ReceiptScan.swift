import FoundationEssentials
import RelayModel
import Storage

/// Scans the receipt blocks, newest first, up to a bound.
struct ReceiptScan: Sendable {
    let filter: ReceiptFilter
    let limit: Int
    let bound: Int
    /// A further condition on receipts.
    var isWanted: @Sendable (DeliveryReceipt) -> Bool = { _ in true }

    func run(in db: Database) throws -> [DeliveryReceipt] {
        let position = filter.position?.stored
        let bit = filter.outcome?.bit
        let subscription = filter.subscriptionSerial?.stored
        let device = filter.deviceSerial?.stored
        let rows = try Row.fetchCursor(
            db, sql: position == nil ? Self.allBlocks : Self.blocksOfPosition(in: db.dialect),
            arguments: [position, bit])
        var found: [DeliveryReceipt] = []
        var scanned = 0
        while found.count < limit, scanned < bound, let row = try rows.next() {
            // In a change with very many receipts, nearly all of them belong to other deliveries,
            // so they are skipped while decoding.
            let receipts = ReceiptBlock.decode(row["body"] as Data, of: filter.deliveryID) {
                $0 == position ?? $0 && $1 == subscription ?? $1 && $2 == device ?? $2
            }
            guard let receipts else {
                throw StorageError.damaged(
                    path: "receiptBlock", reason: "block \(row["id"] as Int64) cannot be read")
            }
            scanned += row["count"]
            let newestFirst = receipts.filter(matches).sorted { $0.at > $1.at }
            found += newestFirst.prefix(limit - found.count)
        }
        return found
    }

    /// The blocks that may contain receipts with an outcome.
    private static let allBlocks = """
        SELECT id, count, body FROM receiptBlock
        WHERE ?1 IS NULL AND (?2 IS NULL OR outcomes & ?2 <> 0) ORDER BY id DESC
        """

    /// Returns the statement for the blocks that may contain receipts of one change.
    ///
    /// An index with a few bytes for each block finds them.
    static func blocksOfPosition(in dialect: Dialect) -> String {
        let ids = """
            SELECT id FROM receiptBlock INDEXED BY receiptBlockPositions
            WHERE lastPosition >= ?1 AND firstPosition <= ?1
                AND (?2 IS NULL OR outcomes & ?2 <> 0)
            """
        return """
            SELECT id, count, body FROM receiptBlock WHERE \(dialect.isAmong("id", ids))
            ORDER BY id DESC
            """
    }

    private func matches(_ receipt: DeliveryReceipt) -> Bool {
        filter.deliveryID.map { $0 == receipt.deliveryID } ?? true
            && filter.position.map { $0 == receipt.ordinal.position } ?? true
            && filter.subscriptionSerial.map { $0 == receipt.subscriptionSerial } ?? true
            && filter.deviceSerial.map { $0 == receipt.deviceSerial } ?? true
            && filter.outcome.map { $0 == receipt.outcome } ?? true && isWanted(receipt)
    }
}
