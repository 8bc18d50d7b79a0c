public import RelayModel

extension FieldValue {
    /// Creates the value of an argument of a condition, from the relay's notation or from the form
    /// in which CloudKit's clients write values.
    ///
    /// That form is a reference or a whole record (`{"recordName", "zoneID"?, …}`), a typed value
    /// (`{"value", "type"?}`) or a location (`{"latitude", "longitude"}`), also within lists. Any
    /// other object becomes a dictionary.
    ///
    /// - Throws: ``JSONContractError`` at the first part that does not fit.
    public init(argument json: JSONValue, path: String) throws(JSONContractError) {
        self = try PredicateArgument.value(json, path)
    }

    /// Checks that an argument contains no object that is not a form of value of CloudKit's
    /// clients.
    ///
    /// Such an object would silently become a dictionary, which equals no reference and no number.
    /// A dictionary must be written as `{"$map": {…}}`. In RQL a GeoJSON polygon is allowed as a
    /// shape.
    ///
    /// - Throws: ``JSONContractError`` at the object.
    public static func checkArgument(
        _ json: JSONValue, of dialect: PredicateDialect, path: String
    ) throws(JSONContractError) {
        if dialect == .rql, PredicateArgument.isPolygon(json) { return }
        try PredicateArgument.check(json, path)
    }
}

/// Reads and checks the arguments that take the place of `%@`.
private enum PredicateArgument {
    /// The forms in which an object can represent a value.
    private enum Form {
        case notation, reference, typed, place, plain
    }

    /// The members of CloudKit's dictionary of a reference.
    ///
    /// A dictionary of a record stands for a reference too (CKQuery: "a CKRecord, CKRecord.ID or
    /// CKRecord.Reference").
    private static let referenceMembers: Set<String> = ["recordName", "zoneID", "action"]

    static func value(
        _ json: JSONValue, _ path: String
    ) throws(JSONContractError) -> FieldValue {
        switch json {
        case .array(let elements):
            var values: [FieldValue] = []
            values.reserveCapacity(elements.count)
            for (index, element) in elements.enumerated() {
                values.append(try value(element, "\(path)[\(index)]"))
            }
            return .list(values)
        case .object(let object):
            switch form(of: object) {
            case .notation, .plain: return try FieldValue(notation: json, path: path)
            case .reference, .place: return try CloudKitValue.derive(json, path)
            case .typed: return try CloudKitValue.read(try JSONReader(json, path: path))
            }
        default: return try FieldValue(notation: json, path: path)
        }
    }

    static func check(_ json: JSONValue, _ path: String) throws(JSONContractError) {
        switch json {
        case .array(let elements):
            for (index, element) in elements.enumerated() {
                try check(element, "\(path)[\(index)]")
            }
        case .object(let object) where form(of: object) == .plain:
            throw JSONContractError(
                path: path,
                reason: "an object must be a reference {recordName}, a typed value {value, type}, "
                    + "a location {latitude, longitude}, or a dictionary as {$map: {…}}")
        default: return
        }
    }

    /// Returns whether the JSON is an object that GEOWITHIN takes as a shape and that has no other
    /// use.
    static func isPolygon(_ json: JSONValue) -> Bool {
        guard case .object(let object) = json, object["type"] == "Polygon",
            case .array? = object["coordinates"]
        else { return false }
        return true
    }

    private static func form(of object: JSONObject) -> Form {
        if object["$dict"] == .bool(true) { return .notation }
        if let first = object.members.first, first.name.hasPrefix("$") { return .notation }
        if object["recordName"] != nil {
            let isReference = object.members.allSatisfy { referenceMembers.contains($0.name) }
            return isReference || object["recordType"] != nil ? .reference : .plain
        }
        if object["value"] != nil {
            return object.members.allSatisfy { ["value", "type"].contains($0.name) }
                ? .typed : .plain
        }
        let isPlace = object["latitude"]?.double != nil && object["longitude"]?.double != nil
        return isPlace ? .place : .plain
    }
}
