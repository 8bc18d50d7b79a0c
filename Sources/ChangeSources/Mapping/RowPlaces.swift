/// What a change has beside its fields, and a mapping names the place of.
package enum PlaceRole: String, Sendable, Hashable, CaseIterable {
    /// The zone's name; the default zone unless given.
    case zone
    /// The database scope; `public` unless given, `private` where an owner is.
    case database
    /// The owner's user record name.
    case owner
    /// The list of those who may read the record.
    case readers
    /// The version that orders a record's changes.
    case version
    /// The time of the change.
    case occurredAt
}

/// Where the rows of a table have what a change needs beside its fields.
package struct RowPlaces: Sendable, Hashable {
    /// Where the zone's name stands.
    package var zone: ValuePlace?
    /// Where the database scope stands.
    package var database: ValuePlace?
    /// Where the owner's user record name stands.
    package var owner: ValuePlace?
    /// Where the list of those who may read the record stands.
    package var readers: ValuePlace?
    /// Where the version that orders a record's changes stands.
    package var version: ValuePlace?
    /// Where the time of the change stands.
    package var occurredAt: ValuePlace?
    /// Where the originating device stands; the first place with a value counts.
    package var originDevice: [ValuePlace] = [.header(RowPlaces.originHeader)]
    /// Where the user who made the change stands; the first place with a value counts.
    package var originUser: [ValuePlace] = []

    /// The header that names the originating device unless the mapping says otherwise.
    package static let originHeader = "X-Origin-Device"

    /// The place of one of them.
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

    /// All places, in no order.
    var all: [ValuePlace] {
        originDevice + originUser + PlaceRole.allCases.compactMap { self[$0] }
    }
}

/// What stands elsewhere in the rows of one table than in those of all others.
package struct TablePlaces: Sendable, Hashable {
    /// A place of this table's own.
    enum Own: Sendable, Hashable {
        case place(ValuePlace)
        /// Rows of this table have none, whatever others have.
        case nowhere
    }

    var own: [PlaceRole: Own] = [:]
    var originDevice: [ValuePlace]?
    var originUser: [ValuePlace]?

    /// The places of this table: its own, else the `general` ones.
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

    /// All places of its own, in no order.
    var all: [ValuePlace] {
        (originDevice ?? []) + (originUser ?? [])
            + own.values.compactMap { if case .place(let place) = $0 { place } else { nil } }
    }
}
