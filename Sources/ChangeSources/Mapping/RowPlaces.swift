/// The parts of a change besides its fields that a mapping can name the place of.
package enum PlaceRole: String, Sendable, Hashable, CaseIterable {
    /// The zone's name; without it, the default zone.
    case zone
    /// The database scope; without it, `private` if there is an owner, or else `public`.
    case database
    /// The owner's user record name.
    case owner
    /// The readers: the users who may know of the change.
    case readers
    /// The version that orders a record's changes.
    case version
    /// The time of the change.
    case occurredAt
}

/// The places in a table's rows of everything that a change needs besides its fields.
package struct RowPlaces: Sendable, Hashable {
    /// The place of the zone's name.
    package var zone: ValuePlace?
    /// The place of the database scope.
    package var database: ValuePlace?
    /// The place of the owner's user record name.
    package var owner: ValuePlace?
    /// The place of the list of readers.
    package var readers: ValuePlace?
    /// The place of the version that orders a record's changes.
    package var version: ValuePlace?
    /// The place of the time of the change.
    package var occurredAt: ValuePlace?
    /// The places of the originating device; the first one with a value counts.
    package var originDevice: [ValuePlace] = [.header(RowPlaces.originHeader)]
    /// The places of the user who made the change; the first one with a value counts.
    package var originUser: [ValuePlace] = []

    /// The header that names the originating device by default.
    package static let originHeader = "X-Origin-Device"

    /// The place for `role`.
    subscript(role: PlaceRole) -> ValuePlace? {
        get {
            switch role {
            case .zone: zone
            case .database: database
            case .owner: owner
            case .readers: readers
            case .version: version
            case .occurredAt: occurredAt
            }
        }
        set {
            switch role {
            case .zone: zone = newValue
            case .database: database = newValue
            case .owner: owner = newValue
            case .readers: readers = newValue
            case .version: version = newValue
            case .occurredAt: occurredAt = newValue
            }
        }
    }

    /// All places, in no particular order.
    var all: [ValuePlace] {
        originDevice + originUser + PlaceRole.allCases.compactMap { self[$0] }
    }
}

/// The places of one table that differ from those of all other tables.
package struct TablePlaces: Sendable, Hashable {
    /// The place that a table has for one role.
    enum Own: Sendable, Hashable {
        case place(ValuePlace)
        /// Rows of this table have no such place, even if those of other tables do.
        case nowhere
    }

    var own: [PlaceRole: Own] = [:]
    var originDevice: [ValuePlace]?
    var originUser: [ValuePlace]?

    /// Returns the places of this table: its own, or else the `general` ones.
    func over(_ general: RowPlaces) -> RowPlaces {
        var places = general
        for (role, own) in own {
            switch own {
            case .place(let place): places[role] = place
            case .nowhere: places[role] = nil
            }
        }
        places.originDevice = originDevice ?? general.originDevice
        places.originUser = originUser ?? general.originUser
        return places
    }

    /// All places of the table's own, in no particular order.
    var all: [ValuePlace] {
        (originDevice ?? []) + (originUser ?? [])
            + own.values.compactMap { if case .place(let place) = $0 { place } else { nil } }
    }
}
