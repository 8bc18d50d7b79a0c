package import RelayModel

/// What a relay knows of one shard of its service: a store in a schema of the same database.
package struct ShardSight: Sendable {
    /// The state of that store.
    package enum State: Sendable, Hashable {
        /// A relay owns it.
        case owned(StoreOwner)
        /// No relay owns it at the moment.
        case unowned
        /// There is no such schema, or it is empty.
        case absent
        /// The tables are not Belfry's.
        case foreign
        /// The tables are of a version that does not have all the columns that are read.
        case otherVersion
        /// The shard cannot be read; the reason.
        case unreadable(String)

        /// The state as one word.
        package var word: String {
            switch self {
            case .owned: "owned"
            case .unowned: "unowned"
            case .absent: "absent"
            case .foreign: "foreign"
            case .otherVersion: "otherVersion"
            case .unreadable: "unreadable"
            }
        }

        /// Why no relay can be asked there; `nil` if one can.
        package var obstacle: String? {
            switch self {
            case .owned: nil
            case .unowned: "no relay owns it"
            case .absent: "there is no such schema yet: start a relay with it"
            case .foreign: "its tables are not Belfry's"
            case .otherVersion: "its tables are of another version of Belfry"
            case .unreadable(let reason): "it cannot be read: \(reason)"
            }
        }
    }

    /// Why there may be containers that are not known; `nil` if all are known.
    package var doubt: String? {
        switch state {
        case .absent, .foreign: nil
        case .owned, .unowned: isRead ? nil : "its containers are being read"
        case .otherVersion, .unreadable: isRead ? nil : state.obstacle
        }
    }

    package let schema: String
    package let state: State
    /// The known containers of the shard.
    package let containers: [ContainerKey]
    /// Whether ``containers`` has all of them; they may not have been read yet.
    package let isRead: Bool
    /// Whether all of the store was or is being moved elsewhere.
    package let isMovedAway: Bool
    /// A number that changes whenever ``containers`` or ``isMovedAway`` changes.
    package let revision: Int

    /// The maximum number of known containers of a shard; further ones are treated as not existing.
    package static let mostContainers = 100_000

    package init(
        schema: String, state: State, containers: [ContainerKey], isRead: Bool = true,
        isMovedAway: Bool = false, revision: Int
    ) {
        self.schema = schema
        self.state = state
        self.containers = containers
        self.isRead = isRead
        self.isMovedAway = isMovedAway
        self.revision = revision
    }
}
