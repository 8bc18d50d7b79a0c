/// The two worlds of a container, which share nothing but its name.
public enum ContainerEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Where an application is built; devices have sandbox tokens.
    case development
    /// Where an application is used.
    case production

    /// The value of `ce` in a push: every development sample has 2, and Apple's client reads an
    /// absent one as 1.
    public var wireValue: Int64 {
        switch self {
        case .production: 1
        case .development: 2
        }
    }
}

/// Which of a container's databases.
public enum DatabaseScope: String, Sendable, Hashable, CaseIterable {
    /// Everybody's.
    case `public`
    /// One user's own.
    case `private`
    /// What others share with one user.
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

    /// A container in development and the same one in production share nothing.
    public init(container: ContainerID, environment: ContainerEnvironment) {
        self.container = container
        self.environment = environment
    }

    /// `container/environment`, as in URLs.
    public var description: String { "\(container)/\(environment.rawValue)" }
}

/// A named part of a database.
public struct ZoneID: Sendable, Hashable {
    /// The name of the zone that is meant when none is named.
    public static let defaultName = "_defaultZone"
    /// The owner of zones that belong to nobody in particular, as in the public database.
    public static let defaultOwner = "_defaultOwner"

    /// The zone that is meant when none is named.
    public static let `default` = ZoneID(uncheckedName: defaultName, owner: nil)

    /// The name, 1 to 255 UTF-8 bytes long.
    public let zoneName: String
    /// The owner, where it is not the one that the database implies.
    public let ownerRecordName: UserID?

    /// Creates a zone ID, or returns `nil` if the name is empty, too long, or has control
    /// characters.
    ///
    /// CloudKit's `_defaultOwner` counts as no owner, and so does what its native classes have in
    /// the place of the user's own name.
    public init?(zoneName: String, ownerRecordName: UserID? = nil) {
        guard zoneName.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.init(uncheckedName: zoneName, owner: ownerRecordName)
    }

    private init(uncheckedName: String, owner: UserID?) {
        zoneName = uncheckedName
        let name = owner?.rawValue
        ownerRecordName = name == Self.defaultOwner || name == Self.oneself ? nil : owner
    }

    /// `CKCurrentUserDefaultName`, which some clients send as it is.
    private static let oneself = "__defaultOwner__"

    /// Whether two zones have the same owner and the same name, byte by byte, as the database
    /// compares them: two spellings of one letter are equal as texts, and two zones.
    @inlinable
    public static func == (left: ZoneID, right: ZoneID) -> Bool {
        left.zoneName.utf8.count == right.zoneName.utf8.count
            && left.zoneName.utf8.elementsEqual(right.zoneName.utf8)
            && left.ownerRecordName == right.ownerRecordName
    }

    /// Hashes the bytes, by which zones are compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name: zoneName)
        hasher.combine(ownerRecordName)
    }
}

/// Names one record within its database.
public struct RecordID: Sendable, Hashable {
    /// The record's name.
    public let recordName: RecordName
    /// The zone it lies in.
    public let zoneID: ZoneID

    /// Names the record `recordName` in `zoneID`.
    public init(recordName: RecordName, zoneID: ZoneID = .default) {
        self.recordName = recordName
        self.zoneID = zoneID
    }
}
