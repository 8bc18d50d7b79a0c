/// One of the two environments of a container, which share nothing but the container's name.
public enum ContainerEnvironment: String, Sendable, Hashable, CaseIterable {
    /// The environment in which an application is developed; its devices have sandbox tokens.
    case development
    /// The environment of the released application.
    case production

    /// The value of `ce` in a push.
    ///
    /// Every development sample has 2, and Apple's client reads an absent value as 1.
    public var wireValue: Int64 {
        switch self {
        case .production: 1
        case .development: 2
        }
    }
}

/// One of a container's databases.
public enum DatabaseScope: String, Sendable, Hashable, CaseIterable {
    /// The database that all users share.
    case `public`
    /// A user's own database.
    case `private`
    /// The records that other users share with a user.
    case shared

    /// The value of `dbs` in a push, as Apple's own daemon reads it.
    ///
    /// It is not `CKDatabase.Scope`'s raw value, where public is 1 and private 2.
    public var wireValue: Int64 {
        switch self {
        case .private: 1
        case .public: 2
        case .shared: 3
        }
    }
}

/// A container in one of its environments: the first part of every key.
public struct ContainerKey: Sendable, Hashable, CustomStringConvertible {
    /// The container.
    public let container: ContainerID
    /// The environment.
    public let environment: ContainerEnvironment

    /// Creates a key; the same container in the other environment is another key.
    public init(container: ContainerID, environment: ContainerEnvironment) {
        self.container = container
        self.environment = environment
    }

    /// `container/environment`, as in URLs.
    public var description: String { "\(container)/\(environment.rawValue)" }
}

/// A named part of a database.
public struct ZoneID: Sendable, Hashable {
    /// The name of the zone that is used when none is named.
    public static let defaultName = "_defaultZone"
    /// The owner name of zones without a particular owner, as in the public database.
    public static let defaultOwner = "_defaultOwner"

    /// The zone that is used when none is named.
    public static let `default` = ZoneID(uncheckedName: defaultName, owner: nil)

    /// The name, 1 to 255 UTF-8 bytes long.
    public let zoneName: String
    /// The owner, if it is not the one that the database implies.
    public let ownerRecordName: UserID?

    /// Creates a zone ID, or returns `nil` if the name is empty, too long, or has control
    /// characters.
    ///
    /// CloudKit's `_defaultOwner` counts as no owner. So does the placeholder that its native
    /// classes use for the current user.
    public init?(zoneName: String, ownerRecordName: UserID? = nil) {
        guard zoneName.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.init(uncheckedName: zoneName, owner: ownerRecordName)
    }

    private init(uncheckedName: String, owner: UserID?) {
        zoneName = uncheckedName
        let name = owner?.rawValue
        ownerRecordName = name == Self.defaultOwner || name == Self.oneself ? nil : owner
    }

    /// `CKCurrentUserDefaultName`, which some clients send literally.
    private static let oneself = "__defaultOwner__"

    /// Returns whether two zones have the same owner and name.
    ///
    /// Names compare by bytes, as in the database: two spellings of one letter are equal as Swift
    /// strings, but name two zones.
    @inlinable
    public static func == (left: ZoneID, right: ZoneID) -> Bool {
        left.zoneName.utf8.count == right.zoneName.utf8.count
            && left.zoneName.utf8.elementsEqual(right.zoneName.utf8)
            && left.ownerRecordName == right.ownerRecordName
    }

    /// Hashes the bytes, because equality compares bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name: zoneName)
        hasher.combine(ownerRecordName)
    }
}

/// The ID of one record within its database.
public struct RecordID: Sendable, Hashable {
    /// The record's name.
    public let recordName: RecordName
    /// The zone of the record.
    public let zoneID: ZoneID

    /// Creates the ID of the record `recordName` in `zoneID`.
    public init(recordName: RecordName, zoneID: ZoneID = .default) {
        self.recordName = recordName
        self.zoneID = zoneID
    }
}
