package import RelayModel

/// How much of a thing a container, or one user or database of it, may have.
///
/// What a store has beyond a quota, because the quota was lowered, stays; it grows no more.
package enum Quota: String, Sendable, Hashable, CaseIterable {
    /// Active subscriptions.
    case subscriptions
    /// Bytes of their stored form.
    case subscriptionBytes
    /// Active subscriptions of one user, in all databases.
    case userSubscriptions
    /// Bytes of their stored form.
    case userSubscriptionBytes
    /// Registered devices.
    case devices
    /// Registered devices of one user; a further one ends the one not registered for longest.
    case userDevices
    /// Records that are kept.
    case records
    /// Bytes of the rows of kept records, marks of deleted ones included.
    case recordBytes
    /// Records of one user: in the private database, or created in the public one.
    case userRecords
    /// Bytes of their rows.
    case userRecordBytes
    /// Zones but for default ones, marks of deleted ones included.
    case zones
    /// The same of one database.
    case databaseZones
    /// Queries of records at a time.
    case queries

    /// The largest that can be set.
    package static let largest = 1_000_000_000_000

    /// What holds unless somebody says otherwise.
    package var standard: Int {
        let mebibyte = 1024 * 1024
        return switch self {
        case .subscriptions: 5_000_000
        case .subscriptionBytes: 8192 * mebibyte
        case .userSubscriptions: Limits.maximumSubscriptionsPerUser
        case .userSubscriptionBytes: 64 * mebibyte
        case .devices: 5_000_000
        case .userDevices: 1000
        case .records: 10_000_000
        case .recordBytes: 65_536 * mebibyte
        case .userRecords: 1_000_000
        case .userRecordBytes: 4096 * mebibyte
        case .zones: 1_000_000
        case .databaseZones: Limits.maximumZonesPerDatabase
        case .queries: 32
        }
    }

    /// What the quota is of, in words for people.
    package var subject: String {
        switch self {
        case .subscriptions: "subscriptions of the container"
        case .subscriptionBytes: "bytes of subscriptions of the container"
        case .userSubscriptions: "subscriptions of the user"
        case .userSubscriptionBytes: "bytes of subscriptions of the user"
        case .devices: "devices of the container"
        case .userDevices: "devices of the user"
        case .records: "records of the container"
        case .recordBytes: "bytes of records of the container"
        case .userRecords: "records of the user"
        case .userRecordBytes: "bytes of records of the user"
        case .zones: "zones of the container"
        case .databaseZones: "zones of the database"
        case .queries: "queries of the container at a time"
        }
    }
}

/// Quotas that somebody has set; the others are as whoever comes next says.
package struct Quotas: Sendable, Hashable {
    /// Those that are set.
    package var limits: [Quota: Int] = [:]

    /// Creates quotas of which none is set.
    package init() {}

    /// A quota: as it is set, else the standard one.
    package subscript(quota: Quota) -> Int {
        get { limits[quota] ?? quota.standard }
        set { limits[quota] = newValue }
    }

    /// These quotas, with what `container` sets in their place.
    package func overridden(by container: Quotas) -> Quotas {
        var quotas = self
        quotas.limits.merge(container.limits) { _, own in own }
        return quotas
    }
}

extension Quotas {
    /// Reads quotas, as an operator writes them and as they are stored; those that are not named
    /// stay as they are in `before`, and `null` clears one.
    ///
    /// - Throws: `JSONContractError` for an unknown member or a number that is no quota.
    package init(
        _ reader: JSONReader, changing before: Quotas = Quotas()
    ) throws(JSONContractError) {
        try reader.allowOnly(Quota.allCases.map(\.rawValue))
        self = before
        for quota in Quota.allCases {
            if reader.object[quota.rawValue] == .null { limits[quota] = nil }
            guard let limit = try reader.integer(quota.rawValue) else { continue }
            guard (0...Int64(Quota.largest)).contains(limit) else {
                throw reader.failure(quota.rawValue, "must be 0 to \(Quota.largest)")
            }
            limits[quota] = Int(limit)
        }
    }

    /// The quotas that are set; `nil` if none is.
    package var json: JSONValue? {
        var object = JSONObject()
        for quota in Quota.allCases {
            object[quota.rawValue] = limits[quota].map { .integer(Int64($0)) }
        }
        return object.members.isEmpty ? nil : .object(object)
    }
}

/// Something would have gone beyond a quota; nothing was written.
package struct QuotaRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The quota.
    package var quota: Quota
    /// What it is.
    package var limit: Int
    /// What is used of it already.
    package var use: Int

    /// Describes a refusal.
    package init(_ quota: Quota, limit: Int, use: Int) {
        self.quota = quota
        self.limit = limit
        self.use = use
    }

    /// One sentence for people.
    package var description: String {
        "the quota \(quota.rawValue) is reached: \(limit) \(quota.subject) are allowed, "
            + "and there are \(use)"
    }
}

/// What a container has of the things that quotas are about.
package struct QuotaUse: Sendable, Hashable {
    /// What there is, by quota; of the container as a whole.
    package var amounts: [Quota: Int] = [:]
    /// Changes whose record was not kept, because the container had no room for one more.
    package var unkept = 0

    package init() {}
}
