package import RelayModel

/// What a relay sees of one shard of its service: a store in a schema of the same database.
package struct ShardSight: Sendable {
    /// How it is with that store.
    package enum State: Sendable, Hashable {
        /// A relay owns it.
        case owned(StoreOwner)
        /// No relay owns it at the moment.
        case unowned
        /// There is no such schema, or nothing in it.
        case absent
        /// The tables are not Belfry's.
        case foreign
        /// The tables are of a version that shows less than is needed.
        case otherVersion
        /// It cannot be read, and why.
        case unreadable(String)

        /// One word for it.
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

        /// Why nobody can be asked there; `nil` if somebody can.
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

    /// Why something may lie there of which nobody knows; `nil` if nothing does.
    package var doubt: String? {
        switch state {
        case .absent, .foreign: nil
        case .owned, .unowned: isRead ? nil : "its containers are being read"
        case .otherVersion, .unreadable: isRead ? nil : state.obstacle
        }
    }

    package let schema: String
    package let state: State
    /// What lies there.
    package let containers: [ContainerKey]
    /// Whether ``containers`` are all of them: they may not have been read yet.
    package let isRead: Bool
    /// Whether all of it was moved elsewhere, or is being moved.
    package let isMovedAway: Bool
    /// Another number whenever ``containers`` or ``isMovedAway`` are others.
    package let revision: Int

    /// How many containers of a shard are known at the most: others than these are taken for none.
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
