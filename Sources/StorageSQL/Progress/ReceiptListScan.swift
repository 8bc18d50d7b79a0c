import FoundationEssentials
import RelayModel
import Storage

/// Scans the receipt blocks from a place on, newest first, up to a bound.
struct ReceiptListScan: Sendable {
    let filter: ReceiptListFilter
    let limit: Int
    let bound: Int

    /// Parameters: the block with which the scan begins, and the bit of the wanted outcome.
    private static let blocks = """
        SELECT id, body FROM receiptBlock
        WHERE id <= ?1 AND (?2 IS NULL OR outcomes & ?2 <> 0) ORDER BY id DESC
        """

    /// Parameters: as `blocks`, and the first and last position.
    static let blocksOfPositions = """
        SELECT id, body FROM receiptBlock WHERE id IN (\(ids)) ORDER BY id DESC
        """

    private static let ids = """
        SELECT id FROM receiptBlock INDEXED BY receiptBlockPositions
        WHERE lastPosition >= ?3 AND firstPosition <= ?4 AND id <= ?1
            AND (?2 IS NULL OR outcomes & ?2 <> 0)
        """

    /// Returns the statement for a single position, which few blocks contain.
    ///
    /// Parameters: as `blocksOfPositions`.
    static func blocksOfPosition(in dialect: Dialect) -> String {
        """
        SELECT id, body FROM receiptBlock WHERE \(dialect.isAmong("id", ids)) ORDER BY id DESC
        """
    }

    func run(
        before place: ReceiptPlace?, in db: Database
    ) throws -> ListPage<DeliveryReceipt, ReceiptPlace> {
        let positions = wantedPositions
        var containers = try DeviceContainers(filter.container, in: db)
        var sql = Self.blocks
        var arguments: StatementArguments = [
            place?.block ?? Int64.max, filter.receipt.outcome?.bit,
        ]
        if let positions {
            guard let first = positions.min(), let last = positions.max() else {
                return ListPage([], next: nil)
            }
            sql =
                first == last ? Self.blocksOfPosition(in: db.dialect) : Self.blocksOfPositions
            arguments += [first.stored, last.stored]
        }
        let rows = try Row.fetchCursor(db, sql: sql, arguments: arguments)
        var page = ListPage<DeliveryReceipt, ReceiptPlace>([], next: nil)
        var last: ReceiptPlace?
        var scanned = 0
        while let row = try rows.next() {
            let id: Int64 = row["id"]
            guard scanned < bound, !containers.isSpent, page.elements.count < limit else {
                page.next = last
                return page
            }
            guard let receipts = ReceiptBlock.decode(row["body"] as Data) else {
                throw StorageError.damaged(
                    path: "receiptBlock", reason: "block \(id) cannot be read")
            }
            scanned += receipts.count
            let seen = place.map { $0.block == id ? $0.seen : 0 } ?? 0
            let newestFirst = receipts.enumerated().sorted {
                ($0.element.at, $0.offset) > ($1.element.at, $1.offset)
            }
            for (index, receipt) in newestFirst.enumerated().dropFirst(seen) {
                guard page.elements.count < limit else {
                    page.next = ReceiptPlace(block: id, seen: index)
                    return page
                }
                let receipt = receipt.element
                guard isWanted(receipt, positions) else { continue }
                if !containers.know(receipt.deviceSerial) {
                    try containers.learn(
                        of: newestFirst[index...].lazy.map { $0.element }
                            .filter { isWanted($0, positions) })
                }
                if containers.have(receipt.deviceSerial) { page.elements.append(receipt) }
            }
            last = ReceiptPlace(block: id - 1, seen: 0)
        }
        return page
    }

    private var wantedPositions: Set<LogPosition>? {
        filter.receipt.position.map { [$0] } ?? filter.positions
    }

    private func isWanted(_ receipt: DeliveryReceipt, _ positions: Set<LogPosition>?) -> Bool {
        let asked = filter.receipt
        if let id = asked.deliveryID, id != receipt.deliveryID { return false }
        if let positions, !positions.contains(receipt.ordinal.position) { return false }
        if let serial = asked.subscriptionSerial, serial != receipt.subscriptionSerial {
            return false
        }
        if let serial = asked.deviceSerial, serial != receipt.deviceSerial { return false }
        if let outcome = asked.outcome, outcome != receipt.outcome { return false }
        if let serials = filter.subscriptions, !serials.contains(receipt.subscriptionSerial) {
            return false
        }
        return filter.devices.map { $0.contains(receipt.deviceSerial) } ?? true
    }
}

/// Decides which devices belong to a container.
///
/// Receipts do not name the container, because a block serves all containers.
private struct DeviceContainers {
    /// The maximum numbers of devices looked up together and for one page.
    ///
    /// If other containers have a million newer receipts, a page may concern as many devices. Each
    /// lookup waits for an answer, while other callers wait for the reader.
    private static let most = (together: 64, ofPage: 100_000)

    private let wanted: Int64?
    private let isNarrowed: Bool
    private let find: Statement
    private var known: [UInt64: Bool] = [:]

    init(_ container: ContainerKey?, in db: Database) throws {
        isNarrowed = container != nil
        wanted = try container.flatMap { try db.containerIfKnown($0)?.id }
        find = try db.cachedStatement(
            sql: """
                SELECT container FROM device WHERE serial = ?1
                UNION ALL SELECT container FROM pastDevice WHERE serial = ?1 LIMIT 1
                """)
    }

    /// Whether the page has looked up its maximum of devices.
    var isSpent: Bool { known.count >= Self.most.ofPage }

    /// Returns whether the container of a device is known or does not matter.
    func know(_ serial: UInt64) -> Bool { !isNarrowed || known[serial] != nil }

    /// Returns whether a device belongs to the container, as far as that is known.
    func have(_ serial: UInt64) -> Bool { !isNarrowed || known[serial] == true }

    /// Looks up the containers of the devices of the first of these receipts, as many as are looked
    /// up together.
    mutating func learn(of receipts: some Sequence<DeliveryReceipt>) throws {
        var unknown: [UInt64] = []
        var seen: Set<UInt64> = []
        for receipt in receipts {
            guard unknown.count < Self.most.together else { break }
            let serial = receipt.deviceSerial
            if known[serial] == nil, seen.insert(serial).inserted { unknown.append(serial) }
        }
        let found = try Row.fetchFirsts(
            find,
            arguments: unknown.map { (serial) -> StatementArguments in [serial.stored] })
        for (serial, row) in zip(unknown, found) {
            let container = row.map { $0[0] as Int64 }
            known[serial] = wanted != nil && container == wanted
        }
    }
}
