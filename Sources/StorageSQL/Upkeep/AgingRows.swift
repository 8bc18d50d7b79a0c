/// The rows of a table that are pruned in the order of a value in them: a moment, or a position of
/// the log.
///
/// Later rows have later values, approximately.
struct AgingRows: Sendable {
    let table: String
    /// The columns of the primary key.
    let key: [String]
    /// The column with the moment or position, or an expression over columns.
    ///
    /// It has an index.
    let moment: String

    static let dedupeKeys = AgingRows(
        table: "dedupe", key: ["container", "source", "kind", "key"], moment: "rememberedUntil")
    static let signatures = AgingRows(
        table: "usedSignature", key: ["container", "nonce"], moment: "rememberedUntil")
    static let throttlePlaces = AgingRows(
        table: "throttlePlace",
        key: ["container", "owner", "subscription", "device", "deliveryID"], moment: "endsAt")
    static let clientReceipts = AgingRows(
        table: "clientReceipt", key: ["owner", "position", "deviceID", "subscriptionSerial"],
        moment: "markedAt")

    /// A session is kept until the token that began it has ended too.
    static let sessions = AgingRows(
        table: "userSession", key: ["container", "id"],
        moment: "max(endsAt, coalesce(tokenEndsAt, 0))")

    /// Returns the past versions, pruned by the position at which they ended.
    static func past(_ table: VersionTable) -> AgingRows {
        AgingRows(table: PastStep.table(of: table), key: ["serial"], moment: "ended")
    }

    /// Returns the first moment from `start` on, or `nil` if there is none.
    func first(from start: Int64, in db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: firstStatement), arguments: [start])
    }

    /// The statement that finds the first moment.
    var firstStatement: String {
        "SELECT min(\(moment)) FROM \(table) WHERE \(moment) >= ?"
    }

    /// Deletes the first rows between two moments, at most `limit`, and returns their number.
    func delete(from first: Int64, to last: Int64, limit: Int, in db: Database) throws -> Int {
        try db.deleteRows(of: table, by: key, selection, [first, last, limit])
    }

    /// The part of the statement that selects the rows.
    var selection: String {
        "WHERE \(moment) >= ? AND \(moment) <= ? ORDER BY \(moment) LIMIT ?"
    }
}
