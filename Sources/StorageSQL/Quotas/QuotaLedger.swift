import RelayModel
import Storage

/// A kind of thing that is counted as it is created and deleted (`quotaUse`), with its quotas.
enum CountedThing: Int64, CaseIterable {
    case subscriptions = 1
    case devices = 2
    case records = 3
    case zones = 4
    /// Changes whose record was not kept.
    case unkept = 5

    /// The quotas of the whole container, for number and bytes.
    var ofContainer: (number: Quota?, bytes: Quota?) {
        switch self {
        case .subscriptions: (.subscriptions, .subscriptionBytes)
        case .devices: (.devices, nil)
        case .records: (.records, .recordBytes)
        case .zones: (.zones, nil)
        case .unkept: (nil, nil)
        }
    }

    /// The quotas of one holder, which is a user or a database.
    var ofHolder: (number: Quota?, bytes: Quota?) {
        switch self {
        case .subscriptions: (.userSubscriptions, .userSubscriptionBytes)
        case .devices, .unkept: (nil, nil)
        case .records: (.userRecords, .userRecordBytes)
        case .zones: (.databaseZones, nil)
        }
    }
}

/// The amount by which something would grow.
struct Growth {
    var number = 0
    var bytes = 0
}

/// The counts of one container, with its quotas.
struct QuotaLedger {
    let container: StoredContainer
    let quotas: Quotas
    let db: Database

    /// Returns number and bytes for a holder, or for the whole container if `holder` is empty.
    func use(of thing: CountedThing, holder: String = "") throws -> Growth {
        let statement = try db.cachedStatement(
            sql: """
                SELECT number, bytes FROM quotaUse WHERE container = ? AND thing = ? AND holder = ?
                """)
        let row = try Row.fetchOne(statement, arguments: [container.id, thing.rawValue, holder])
        return row.map { Growth(number: $0[0], bytes: $0[1]) } ?? Growth()
    }

    /// Returns the refusal for the first quota that would be exceeded, or `nil`.
    ///
    /// Something that does not grow is never refused.
    func refusal(
        of thing: CountedThing, growingBy whole: Growth, holder: String = "",
        by own: Growth? = nil
    ) throws -> QuotaRefusal? {
        let refusal = try refusal(
            thing.ofContainer, use: { try use(of: thing) }, growingBy: whole)
        guard refusal == nil, !holder.isEmpty else { return refusal }
        return try self.refusal(
            thing.ofHolder, use: { try use(of: thing, holder: holder) }, growingBy: own ?? whole)
    }

    private func refusal(
        _ limits: (number: Quota?, bytes: Quota?), use: () throws -> Growth,
        growingBy growth: Growth
    ) throws -> QuotaRefusal? {
        guard growth.number > 0 || growth.bytes > 0 else { return nil }
        let use = try use()
        if let quota = limits.number, growth.number > 0,
            use.number + growth.number > quotas[quota]
        {
            return QuotaRefusal(quota, limit: quotas[quota], use: use.number)
        }
        if let quota = limits.bytes, growth.bytes > 0, use.bytes + growth.bytes > quotas[quota] {
            return QuotaRefusal(quota, limit: quotas[quota], use: use.bytes)
        }
        return nil
    }

    /// Returns whether even a growth by `most` fits, so that no exact calculation is needed.
    func hasRoom(for thing: CountedThing, _ most: Growth, holder: String) throws -> Bool {
        try refusal(of: thing, growingBy: most, holder: holder) == nil
    }

    /// Counts a change whose record is not kept.
    func noteUnkept() throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO quotaUse (container, thing, holder, number, bytes)
                VALUES (?, ?, '', 1, 0)
                ON CONFLICT (container, thing, holder) DO UPDATE SET number = quotaUse.number + 1
                """
        ).execute(arguments: [container.id, CountedThing.unkept.rawValue])
    }
}

extension OpenCommit {
    /// Returns the counts of a container as of this transaction.
    func ledger(of container: StoredContainer) -> QuotaLedger {
        QuotaLedger(
            container: container, quotas: quotas.overridden(by: container.quotas), db: db)
    }
}
