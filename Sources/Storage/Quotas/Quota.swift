package import RelayModel

/// A limit on what a container, or one user or database of it, may have.
///
/// If a quota is lowered below the current use, existing things stay, and no more can be added.
package enum Quota: String, Sendable, Hashable, CaseIterable {
    /// Active subscriptions.
    case subscriptions
    /// Bytes of the stored form of the container's subscriptions.
    case subscriptionBytes
    /// Active subscriptions of one user, in all databases.
    case userSubscriptions
    /// Bytes of the stored form of one user's subscriptions.
    case userSubscriptionBytes
    /// Registered devices.
    case devices
    /// Registered devices of one user.
    ///
    /// A further one ends the device that was not registered for the longest time.
    case userDevices
    /// Kept records.
    case records
    /// Bytes of the rows of kept records, including marks of deleted records.
    case recordBytes
    /// Records of one user: in the private database, or created by the user in the public one.
    case userRecords
    /// Bytes of the rows of the user's records.
    case userRecordBytes
    /// Zones except default zones, including marks of deleted zones.
    case zones
    /// Zones of one database, counted the same way.
    case databaseZones
    /// Simultaneous record queries.
    case queries

    /// The largest value that can be set.
    package static let largest = 1_000_000_000_000

    /// The default value.
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

    /// What the quota limits, in words for people.
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

/// Explicitly set quotas; the others fall back to the next level (configuration, then default).
package struct Quotas: Sendable, Hashable {
    /// The quotas that are set.
    package var limits: [Quota: Int] = [:]

    /// Creates quotas without any that are set.
    package init() {}

    /// The quota's value: as set, or else the default.
    package subscript(quota: Quota) -> Int {
        get { limits[quota] ?? quota.standard }
        set { limits[quota] = newValue }
    }

    /// Returns these quotas with those of `container` replacing them.
    package func overridden(by container: Quotas) -> Quotas {
        var quotas = self
        quotas.limits.merge(container.limits) { _, own in own }
        return quotas
    }
}

extension Quotas {
    /// Creates quotas from JSON, in the form in which operators write them and the store keeps
    /// them.
    ///
    /// Quotas that are not named stay as they are in `before`, and `null` clears a quota.
    ///
    /// - Throws: `JSONContractError` for an unknown member or a number out of range.
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

    /// The quotas that are set, or `nil` if none is.
    package var json: JSONValue? {
        var object = JSONObject()
        for quota in Quota.allCases {
            object[quota.rawValue] = limits[quota].map { .integer(Int64($0)) }
        }
        return object.members.isEmpty ? nil : .object(object)
    }
}

/// A refusal because a write would have exceeded a quota.
///
/// Nothing was written.
package struct QuotaRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The quota.
    package var quota: Quota
    /// The value of the quota.
    package var limit: Int
    /// The current use.
    package var use: Int

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

/// A container's use of its quotas.
package struct QuotaUse: Sendable, Hashable {
    /// The amounts by quota, for the container as a whole.
    package var amounts: [Quota: Int] = [:]
    /// The number of changes whose record was not kept because the container had no room for
    /// another record.
    package var unkept = 0

    package init() {}
}
