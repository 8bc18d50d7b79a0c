import RelayModel

/// The form in which a client's reference, location or asset is kept and answered.
///
/// Readers decode records strictly, and some clients fail on a member of an unexpected kind. So no
/// member is kept that a reader of CloudKit's dictionaries would not expect.
enum WrittenForm {
    /// The actions of a reference, which say what happens to its record when the target is deleted
    /// (CloudKit Web Services Reference, "Reference Dictionary").
    private static let actions = ["NONE", "DELETE_SELF", "VALIDATE"]
    /// The numbers of a location besides its coordinates.
    private static let measures = [
        "horizontalAccuracy", "verticalAccuracy", "altitude", "speed", "course", "timestamp",
    ]
    /// The texts of an asset.
    private static let texts = [
        "fileChecksum", "referenceChecksum", "wrappingKey", "receipt", "downloadURL",
    ]

    /// Returns the form of `raw`, from which `value` was parsed.
    ///
    /// - Throws: `JSONContractError` that names the member that does not fit.
    static func of(
        _ value: FieldValue, _ raw: JSONValue, path: String
    ) throws(JSONContractError) -> JSONValue {
        switch (value, raw) {
        case (.list(let values), .array(let elements)) where values.contains(where: says):
            var forms: [JSONValue] = []
            for (index, (value, element)) in zip(values, elements).enumerated() {
                do throws(JSONContractError) {
                    forms.append(try of(value, element, path: ""))
                } catch {
                    throw JSONContractError(
                        path: "\(path)[\(index)].\(error.path)", reason: error.reason)
                }
            }
            return .array(forms)
        case (.reference, .object(let object)): return .object(try reference(object, path))
        case (.location(let place), .object(let object)):
            return .object(try location(object, place, path))
        case (.map(let members), .object(let object)) where members["fileChecksum"] != nil:
            try checkAsset(JSONReader(.object(object), path: path))
            return raw
        default: return raw
        }
    }

    /// Returns whether clients may say more of a value than the value keeps.
    private static func says(_ value: FieldValue) -> Bool {
        switch value {
        case .reference, .location, .map: true
        default: false
        }
    }

    /// Returns the form of a reference, which always has an action, as in the service's answers; a
    /// client may write `None`, and members that are `null`.
    private static func reference(
        _ object: JSONObject, _ path: String
    ) throws(JSONContractError) -> JSONObject {
        var form = object
        form.members.removeAll { $0.value == .null }
        let reader = try JSONReader(.object(form), path: path)
        let action = try reader.string("action")?.uppercased() ?? actions[0]
        guard actions.contains(action) else {
            let words = actions.map { "\"\($0)\"" }.joined(separator: ", ")
            throw reader.failure(
                "action", "\"\(action.shortened)\" is unknown; allowed are \(words)")
        }
        form["action"] = .string(action)
        if case .string? = form["zoneID"], let name = form["zoneID"] {
            form["zoneID"] = ["zoneName": name]
        }
        return form
    }

    private static func location(
        _ object: JSONObject, _ place: Location, _ path: String
    ) throws(JSONContractError) -> JSONObject {
        var form = object
        form.members.removeAll { $0.value == .null }
        for (name, coordinate) in [("latitude", place.latitude), ("longitude", place.longitude)] {
            if case .string? = form[name] { form[name] = .number(coordinate) }
        }
        let reader = try JSONReader(.object(form), path: path)
        for name in measures {
            switch form[name] {
            case nil, .integer?, .number?: break
            case .string(let text)?:
                guard let number = Double(text), number.isFinite else {
                    throw reader.failure(name, "a number is expected")
                }
                form[name] = Int64(text).map { JSONValue.integer($0) } ?? JSONValue.number(number)
            case let other?: throw reader.failure(name, "a number is expected, found \(other.kind)")
            }
        }
        return form
    }

    private static func checkAsset(_ reader: JSONReader) throws(JSONContractError) {
        for name in texts { _ = try reader.string(name) }
        switch reader.value("size") {
        case nil, .integer?: return
        case .number(let number)? where Int64(exactly: number) != nil: return
        case let other?: throw reader.failure("size", "an integer is expected, found \(other.kind)")
        }
    }
}
