/// Rows of a table that go in the order of what stands in them: a moment, or a place in the log.
///
/// That of later rows is later, about.
struct AgingRows: Sendable {
    let table: String
    /// The columns of its primary key.
    let key: [String]
    /// The column with the moment or the place, or what is made of columns; it has an index.
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

    /// Each is known until the token of which it began has ended too.
    static let sessions = AgingRows(
        table: "userSession", key: ["container", "id"],
        moment: "max(endsAt, coalesce(tokenEndsAt, 0))")

    /// What has ended before all that the log still has.
    static func past(_ table: VersionTable) -> AgingRows {
        AgingRows(table: PastStep.table(of: table), key: ["serial"], moment: "ended")
    }

    /// The first moment from another one on; `nil` if there is none.
    func first(from start: Int64, in db: Database) throws -> Int64? {
        try Int64.fetchOne(db.cachedStatement(sql: firstStatement), arguments: [start])
    }

    /// What finds the first moment.
    var firstStatement: String {
        "SELECT min(\(moment)) FROM \(table) WHERE \(moment) >= ?"
    }

    /// Deletes the first rows between two moments, at most so many; returns how many.
    func delete(from first: Int64, to last: Int64, limit: Int, in db: Database) throws -> Int {
        try db.deleteRows(of: table, by: key, selection, [first, last, limit])
    }

    /// What finds them.
    var selection: String {
        "WHERE \(moment) >= ? AND \(moment) <= ? ORDER BY \(moment) LIMIT ?"
    }
}
