/// The kind of a record change.
public enum ChangeOperation: String, Sendable, Hashable, CaseIterable {
    /// The record was created.
    case create
    /// The record existed before and after.
    case update
    /// The record was deleted.
    case delete

    /// The value of `fo` in a push: 1 created, 2 updated, 3 deleted.
    public var wireValue: Int64 {
        switch self {
        case .create: 1
        case .update: 2
        case .delete: 3
        }
    }
}

/// How much of a record an image shows.
public enum ImageCompleteness: String, Sendable, Hashable, CaseIterable {
    /// Every field; an absent field is nil.
    case full
    /// Some fields; an absent field is unknown.
    case partial
}

/// The fields of a record just before or just after a change.
public struct RecordImage: Sendable, Hashable {
    /// The fields that the source sent.
    public var fields: RecordFields
    /// Whether `fields` has every field of the record.
    public var completeness: ImageCompleteness

    /// Creates an image, which is complete unless `completeness` says otherwise.
    public init(_ fields: RecordFields, completeness: ImageCompleteness = .full) {
        self.fields = fields
        self.completeness = completeness
    }
}

/// The device and the user that made a change, as far as the source says.
public struct ChangeOrigin: Sendable, Hashable {
    /// The device, which is not notified of its own change.
    public var deviceID: DeviceID?
    /// The user who made the change.
    public var userID: UserID?

    /// Creates an origin from the device and the user that made a change.
    public init(deviceID: DeviceID? = nil, userID: UserID? = nil) {
        self.deviceID = deviceID
        self.userID = userID
    }
}

/// The state of a record that the relay kept before a change.
public struct KeptState: Sendable, Hashable {
    /// The known fields; `nil` if there was no such record.
    public var image: RecordImage?
    /// The readers of the record; `nil` means the default of its database.
    public var readers: [String]?
    /// When the record was created, for a change that creates a record once more.
    ///
    /// Other changes carry this themselves.
    public var created: RecordTrace?
    /// When the record was last modified, under the same condition as `created`.
    public var modified: RecordTrace?

    /// Creates the state of a record; without `image` there was no such record.
    public init(image: RecordImage? = nil, readers: [String]? = nil) {
        self.image = image
        self.readers = readers
    }
}

/// What it means that a change names no readers.
package enum UnnamedReaders: Sendable, Hashable {
    /// The source says nothing about readers.
    case unsaid
    /// The source has readers for its records, but did not send them with this change.
    ///
    /// They are those of the kept record. In the public database they are nobody's where none is
    /// kept.
    case unsent
    /// The source has readers for its records, and sent that this one has none of its own.
    case sentNone
}

/// The location of a record within a container.
package struct RecordAddress: Sendable, Hashable {
    /// The record's name and zone.
    package var recordID: RecordID
    /// The database that the record is in.
    package var database: DatabaseScope
    /// The owner of that database; `nil` for the public one.
    package var owner: UserID?
    /// The record's type there, if a change that moved the record says so.
    package var recordType: RecordType?

    package init(
        _ recordID: RecordID, database: DatabaseScope, owner: UserID?,
        recordType: RecordType? = nil
    ) {
        self.recordID = recordID
        self.database = database
        self.owner = owner
        self.recordType = recordType
    }
}

/// One creation, update or deletion of a record, as a change source reported it.
///
/// ```swift
/// let artwork = try #require(RecordType(rawValue: "Artwork"))
/// let name = try #require(RecordName(rawValue: "a1"))
/// var change = RecordChange(.create, of: artwork, RecordID(recordName: name))
/// change.after = RecordImage(["artist": .string("a-1")])
/// #expect(change.judgedImage?.fields["artist"] == .string("a-1"))
/// ```
public struct RecordChange: Sendable, Hashable {
    /// The kind of the change.
    public var operation: ChangeOperation
    /// The type of the record.
    public var recordType: RecordType
    /// The record's name and zone.
    public var recordID: RecordID
    /// The database that the record is in.
    public var database: DatabaseScope
    /// The owner of that database: required for `private` and `shared`, `nil` for `public`.
    public var owner: UserID?
    /// The record before the change; `nil` where unknown, and for a creation.
    public var before: RecordImage?
    /// The record after the change; `nil` for a deletion.
    public var after: RecordImage?
    /// The names of the fields that differ, if the source says so.
    public var changedKeys: [String]?
    /// The device and the user that made the change.
    public var origin: ChangeOrigin
    /// The users who may read the record; `nil` means the default of its database.
    public var readers: [String]?
    /// The readers of the record before an update, if they differ; `nil` means the same as
    /// `readers`.
    public var readersBefore: [String]?
    /// When the record was created, if the relay keeps the record and so knows.
    public var created: RecordTrace?
    /// The last modification before this change, if the relay keeps the record.
    public var formerlyModified: RecordTrace?
    /// What the relay kept of the record before the change, if it differs from the images: a source
    /// may have left out a change, or may know more than it sent.
    public var kept: KeptState?
    /// Whether the change was not applied to the kept records because a quota is reached.
    ///
    /// For the deletion of a snapshot row it means that its record type is no longer kept.
    public var isUnkept = false
    /// When the change happened, by the source's clock.
    public var occurredAt: Timestamp?
    /// The version by which the source orders the changes of one record, if it has one.
    public var version: Int64?
    /// Whether the change is a row of an initial snapshot, which fires nothing.
    public var isSnapshot: Bool
    /// For a creation, the former address of a record that its source renamed with this change.
    ///
    /// Fields that a partial image leaves out keep the values that they had there. The log does not
    /// store this property.
    package var movedFrom: RecordAddress?

    /// What it means that this change names no readers.
    ///
    /// The log does not store this property.
    package var unnamedReaders = UnnamedReaders.unsaid
    /// Whether the source has readers for its records, but did not send them with this change.
    package var lacksReaders: Bool { readers == nil && unnamedReaders == .unsent }

    /// Whether this change also forgets all records of its type.
    public var forgetsType: Bool { operation == .delete && isSnapshot && isUnkept }

    /// Creates a change in the public database; set the other properties afterwards.
    public init(_ operation: ChangeOperation, of recordType: RecordType, _ recordID: RecordID) {
        self.operation = operation
        self.recordType = recordType
        self.recordID = recordID
        database = .public
        origin = ChangeOrigin()
        isSnapshot = false
    }

    /// The image on which a subscription's predicate is evaluated: the before image of a deletion,
    /// the after image of any other change.
    public var judgedImage: RecordImage? {
        operation == .delete ? before : after
    }
}
