import RelayModel

/// How an answer writes numbers.
enum AnsweredNumbers: Sendable, Hashable {
    case asNumbers
    /// As texts, for clients that read numbers as doubles.
    case asStrings
}

extension FieldValue {
    /// Returns the value as CloudKit writes it; a value that CloudKit does not have becomes a text.
    func answered(_ numbers: AnsweredNumbers) -> JSONValue {
        func number(_ json: JSONValue) -> JSONValue {
            numbers == .asStrings ? .string(json.text) : json
        }
        switch self {
        case .null: return .null
        case .bool(let flag): return number(.integer(flag ? 1 : 0))
        case .integer(let integer): return number(.integer(integer))
        case .double(let double): return number(.number(double))
        case .string(let text): return .string(text)
        case .timestamp(let moment): return number(.integer(moment.milliseconds))
        case .bytes(let bytes): return .string(Base64.encode(bytes))
        case .reference(let reference): return Self.reference(reference.recordID)
        case .location(let place):
            return [
                "latitude": .number(place.latitude), "longitude": .number(place.longitude),
            ]
        case .uuid(let uuid): return .string(uuid.description)
        case .objectID(let bytes): return .string(Hexadecimal.encode(bytes))
        case .list(let values): return .array(values.map { $0.answered(numbers) })
        case .set(let values):
            return .array(
                values.map { $0.answered(numbers) }.orderedByText)
        case .map(let members):
            let json = JSONValue.object(FieldValue.notation(fields: members))
            return members["fileChecksum"] == nil ? .string(json.text) : json
        }
    }

    private static func reference(_ recordID: RecordID) -> JSONValue {
        var object: JSONObject = ["recordName": .string(recordID.recordName.rawValue)]
        if recordID.zoneID != .default { object["zoneID"] = recordID.zoneID.json }
        object["action"] = "NONE"
        return .object(object)
    }
}
