/// When a record was created or modified, and by whom if that is known.
public struct RecordTrace: Sendable, Hashable {
    /// The moment of the change.
    public var at: Timestamp
    /// The user who made the change; `nil` if unknown.
    public var userID: UserID?

    /// Creates a trace; `userID` is `nil` if the user is unknown.
    public init(at: Timestamp, userID: UserID?) {
        self.at = at
        self.userID = userID
    }

    /// The form in which the log stores a trace.
    var storedForm: JSONValue {
        var object: JSONObject = ["at": FieldValue.timestamp(at).notation]
        object["by"] = userID.map { .string($0.rawValue) }
        return .object(object)
    }

    /// Reads what ``storedForm`` wrote; returns `nil` without a reader.
    init?(_ reader: JSONReader?) throws(JSONContractError) {
        guard let reader else { return nil }
        let moment = try reader.require("at", reader.value("at"))
        guard case .timestamp(let at) = try FieldValue(notation: moment, path: reader.path) else {
            throw reader.failure("at", "a moment is expected")
        }
        self.init(at: at, userID: try reader.identifier("by"))
    }
}

/// One of the two images of a change.
public enum ImageSide: Sendable, Hashable {
    /// The record before the change.
    case before
    /// The record after it.
    case after
}

extension RecordChange {
    /// The side of the image on which a predicate is evaluated.
    public var judgedSide: ImageSide { operation == .delete ? .before : .after }

    /// The user who made the change: the one that the source names, or else the owner of the
    /// private database.
    public var editor: UserID? {
        origin.userID ?? (database == .private ? owner : nil)
    }
}
