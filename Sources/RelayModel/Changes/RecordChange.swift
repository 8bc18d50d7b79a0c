/// What happened to a record.
public enum ChangeOperation: String, Sendable, Hashable, CaseIterable {
    /// The record came into being.
    case create
    /// The record was there before and after.
    case update
    /// The record ceased to be.
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
    /// Every field; an absent one is nil.
    case full
    /// Some fields; an absent one is unknown.
    case partial
}

/// The fields of a record just before or just after a change.
public struct RecordImage: Sendable, Hashable {
    /// The fields that the source sent.
    public var fields: RecordFields
    /// Whether these are all.
    public var completeness: ImageCompleteness

    /// Creates an image, complete unless said otherwise.
    public init(_ fields: RecordFields, completeness: ImageCompleteness = .full) {
        self.fields = fields
        self.completeness = completeness
    }
}

/// Who made a change, as far as the source says.
public struct ChangeOrigin: Sendable, Hashable {
    /// The device, which is not notified of its own change.
    public var deviceID: DeviceID?
    /// The user.
    public var userID: UserID?

    /// Names the device and the user that made a change.
    public init(deviceID: DeviceID? = nil, userID: UserID? = nil) {
        self.deviceID = deviceID
        self.userID = userID
    }
}

/// A record as the relay kept it before a change.
public struct KeptState: Sendable, Hashable {
    /// What was known of it; `nil` if there was no such record.
    public var image: RecordImage?
    /// Who might read it; `nil` means the default of its database.
    public var readers: [String]?
    /// Its creation, of a record that a change creates once more; other changes say it themselves.
    public var created: RecordTrace?
    /// Its last modification, likewise.
    public var modified: RecordTrace?

    /// There was no such record unless an image says otherwise.
    public init(image: RecordImage? = nil, readers: [String]? = nil) {
        self.image = image
        self.readers = readers
    }
}

/// Where a record lies within a container.
package struct RecordAddress: Sendable, Hashable {
    /// Which record, in which zone.
    package var recordID: RecordID
    /// Which database it lies in.
    package var database: DatabaseScope
    /// Whose database it is; `nil` for the public one.
    package var owner: UserID?
    /// Of which type it was, where a change that moved it says so.
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
    /// What happened.
    public var operation: ChangeOperation
    /// The type of the record.
    public var recordType: RecordType
    /// Which record, in which zone.
    public var recordID: RecordID
    /// Which database it lies in.
    public var database: DatabaseScope
    /// Whose database it is: required for `private` and `shared`, `nil` for `public`.
    public var owner: UserID?
    /// The record before the change; `nil` where unknown, and for a creation.
    public var before: RecordImage?
    /// The record after the change; `nil` for a deletion.
    public var after: RecordImage?
    /// The fields that differ, where the source says so.
    public var changedKeys: [String]?
    /// Who made the change.
    public var origin: ChangeOrigin
    /// Who may read the record; `nil` means the default of its database.
    public var readers: [String]?
    /// Who might read the record before an update, where others might; `nil` means the same.
    public var readersBefore: [String]?
    /// When the record came into being, where the relay keeps it and so knows.
    public var created: RecordTrace?
    /// The last modification before this change, where the relay keeps the record.
    public var formerlyModified: RecordTrace?
    /// What the relay kept of the record before, where the images do not say the same: a source may
    /// have left out a change, or know more than it sent.
    public var kept: KeptState?
    /// Whether the record was not written to what the relay keeps, because a quota is reached; of
    /// the deletion of a row of a snapshot, that its type is kept no longer.
    public var isUnkept = false
    /// When it happened, by the source's clock.
    public var occurredAt: Timestamp?
    /// The version by which the source orders the changes of one record, where there is one.
    public var version: Int64?
    /// Whether it is a row of an initial snapshot, which fires nothing.
    public var isSnapshot: Bool
    /// Of a creation, where the record lay that its source gave another name with this change.
    ///
    /// What a partial image leaves out is as it was there. The log does not keep it.
    package var movedFrom: RecordAddress?

    /// Whether all records of its type have been forgotten with this one.
    public var forgetsType: Bool { operation == .delete && isSnapshot && isUnkept }

    /// Creates a change in the public database; set the rest on the value.
    public init(_ operation: ChangeOperation, of recordType: RecordType, _ recordID: RecordID) {
        self.operation = operation
        self.recordType = recordType
        self.recordID = recordID
        database = .public
        origin = ChangeOrigin()
        isSnapshot = false
    }

    /// The image on which a subscription's predicate is judged: the before image of a deletion,
    /// the after image of everything else.
    public var judgedImage: RecordImage? {
        operation == .delete ? before : after
    }
}
