/// When a record came into being or was changed, and by whom as far as that was said.
public struct RecordTrace: Sendable, Hashable {
    /// The moment.
    public var at: Timestamp
    /// The user.
    public var userID: UserID?

    /// Without `userID` it is not known who it was.
    public init(at: Timestamp, userID: UserID?) {
        self.at = at
        self.userID = userID
    }

    /// The form in which a trace lies in the log.
    var storedForm: JSONValue {
        var object: JSONObject = ["at": FieldValue.timestamp(at).notation]
        object["by"] = userID.map { .string($0.rawValue) }
        return .object(object)
    }

    /// Reads what ``storedForm`` wrote; nothing from nothing.
    init?(_ reader: JSONReader?) throws(JSONContractError) {
        guard let reader else { return nil }
        let moment = try reader.require("at", reader.value("at"))
        guard case .timestamp(let at) = try FieldValue(notation: moment, path: reader.path) else {
            throw reader.failure("at", "a moment is expected")
        }
        self.init(at: at, userID: try reader.identifier("by"))
    }
}

/// Which image of a change is looked at.
public enum ImageSide: Sendable, Hashable {
    /// The record before the change.
    case before
    /// The record after it.
    case after
}

extension RecordChange {
    /// The image on which a predicate is judged.
    public var judgedSide: ImageSide { operation == .delete ? .before : .after }

    /// Who made the change: whom the source names, or else whose private database it is.
    public var editor: UserID? {
        origin.userID ?? (database == .private ? owner : nil)
    }
}
