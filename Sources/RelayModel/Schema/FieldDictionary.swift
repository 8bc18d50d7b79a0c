/// Reads the values of CloudKit's field dictionaries, `{"value": …, "type": …}` (CloudKit Web
/// Services Reference, "Record Field Dictionary").
///
/// All readers of such dictionaries use this type. A number may be given as text, because some
/// languages have no 64-bit integers, and an integer as 3.0. A boolean is 1 or 0, because CloudKit
/// has none.
package struct FieldDictionary: Sendable {
    /// The purpose for which values are read.
    package enum Purpose: Sendable {
        /// The values become fields of a record: moments must be in the years 0001 to 9999, and an
        /// object that is no reference and no location is a dictionary.
        case kept
        /// The values become constants of a condition: an object must be a reference or a location,
        /// and lists are bounded.
        ///
        /// Only the name and owner of a reference's zone are read, because conditions that were
        /// saved under this rule must stay readable.
        case compared
    }

    private let purpose: Purpose

    package init(_ purpose: Purpose) {
        self.purpose = purpose
    }

    /// Reads a value of the given type.
    ///
    /// - Throws: ``JSONContractError`` at the first part that does not fit the type.
    package func value(
        _ json: JSONValue, as type: SchemaFieldType, path: String
    ) throws(JSONContractError) -> FieldValue {
        guard type.isList else { return try element(json, as: type.element, path: path) }
        guard case .array(let elements) = json else { throw Self.mismatch(type.description, path) }
        return try list(elements, path) { json throws(JSONContractError) in
            try element(json, as: type.element, path: "")
        }
    }

    /// Reads a value whose type follows from its JSON.
    ///
    /// - Throws: ``JSONContractError`` at the first part that is not a value.
    package func inferred(
        _ json: JSONValue, path: String
    ) throws(JSONContractError) -> FieldValue {
        switch json {
        case .bool(let flag): return .integer(flag ? 1 : 0)
        case .array(let elements):
            return try list(elements, path) { json throws(JSONContractError) in
                try inferred(json, path: "")
            }
        case .object(let object):
            if object["recordName"] != nil { return try reference(json, path: path) }
            if let place = Self.place(object["latitude"]?.double, object["longitude"]?.double) {
                return place
            }
            guard purpose == .kept else {
                throw JSONContractError(
                    path: path,
                    reason: "an object must be a reference {recordName} or a location"
                        + " {latitude, longitude}")
            }
            return try FieldValue(notation: json, path: path)
        default: return try FieldValue(notation: json, path: path)
        }
    }

    /// Returns the error for a value that is not of its type, in the words of CloudKit's service.
    package static func mismatch(_ word: String, _ path: String) -> JSONContractError {
        JSONContractError(path: path, reason: "Invalid value, expected type \(word).")
    }
}

extension FieldDictionary {
    private func list(
        _ elements: [JSONValue], _ path: String,
        _ read: (JSONValue) throws(JSONContractError) -> FieldValue
    ) throws(JSONContractError) -> FieldValue {
        guard purpose == .kept || elements.count <= Limits.maximumPredicateListElements else {
            throw JSONContractError(
                path: path,
                reason: "a list has at most \(Limits.maximumPredicateListElements) elements")
        }
        var values: [FieldValue] = []
        values.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            do throws(JSONContractError) {
                values.append(try read(element))
            } catch {
                throw error.inside("\(path)[\(index)]")
            }
        }
        return .list(values)
    }

    private func element(
        _ json: JSONValue, as type: SchemaFieldType.Element, path: String
    ) throws(JSONContractError) -> FieldValue {
        switch type {
        case .any: return try inferred(json, path: path)
        case .reference:
            guard case .object = json else { throw Self.mismatch(type.rawValue, path) }
            return try reference(json, path: path)
        case .asset where purpose == .compared:
            throw JSONContractError(path: path, reason: "assets cannot be compared")
        case .map, .asset:
            let object = try Self.object(json, type, path)
            if case .string = json, let members = Self.membersAsAnswered(object) {
                return .map(try FieldValue.fields(notation: members, path: path))
            }
            return try FieldValue(notation: object, path: path)
        default:
            guard let value = scalar(json, as: type) else {
                throw Self.mismatch(type.rawValue, path)
            }
            return value
        }
    }

    private func scalar(_ json: JSONValue, as type: SchemaFieldType.Element) -> FieldValue? {
        switch (type, json) {
        case (.string, .string(let text)): .string(text)
        case (.int64, .bool(let flag)): .integer(flag ? 1 : 0)
        case (.int64, _): Self.integer(json).map(FieldValue.integer)
        case (.double, _): Self.number(json).map(FieldValue.double)
        case (.timestamp, _): Self.integer(json).flatMap(moment)
        case (.bytes, .string(let text)): Base64.decode(text).map(FieldValue.bytes)
        case (.location, .object(let object)):
            Self.place(
                object["latitude"].flatMap(Self.number), object["longitude"].flatMap(Self.number))
        case (.boolean, .bool(let flag)): .bool(flag)
        case (.boolean, .integer(let number)): .bool(number != 0)
        case (.uuid, .string(let text)): UUIDBytes(text).map(FieldValue.uuid)
        case (.objectID, .string(let text)):
            Hexadecimal.decode(text).flatMap { $0.count == 12 ? FieldValue.objectID($0) : nil }
        default: nil
        }
    }

    private static func integer(_ json: JSONValue) -> Int64? {
        switch json {
        case .integer(let number): number
        case .number(let number): Int64(exactly: number)
        case .string(let text): Int64(text)
        default: nil
        }
    }

    private static func number(_ json: JSONValue) -> Double? {
        switch json {
        case .string(let text): Double(text).flatMap { $0.isFinite ? $0 : nil }
        default: json.double
        }
    }

    private func moment(_ milliseconds: Int64) -> FieldValue? {
        let moment = Timestamp(milliseconds: milliseconds)
        return purpose == .kept && !moment.isPlausible ? nil : .timestamp(moment)
    }

    private static func place(_ latitude: Double?, _ longitude: Double?) -> FieldValue? {
        guard let latitude, let longitude else { return nil }
        return Location(latitude: latitude, longitude: longitude).map(FieldValue.location)
    }

    /// Returns an object from an object or from its JSON text; answers show dictionaries as text to
    /// clients that know no objects.
    private static func object(
        _ json: JSONValue, _ type: SchemaFieldType.Element, _ path: String
    ) throws(JSONContractError) -> JSONValue {
        if case .object = json { return json }
        if case .string(let text) = json, type == .map,
            let parsed = try? JSONValue(parsing: text), case .object = parsed
        {
            return parsed
        }
        throw mismatch(type.rawValue, path)
    }

    /// Returns the members of a dictionary that an answer showed as text and that has names which
    /// the notation reserves for tags, such as those of MongoDB's `DBRef`; `nil` for any other
    /// object.
    private static func membersAsAnswered(_ json: JSONValue) -> JSONObject? {
        guard case .object(let object) = json, object.members.map(\.name) != ["$map"],
            object.members.contains(where: { FieldValue.isTag($0.name) })
        else { return nil }
        return object
    }

    private func reference(
        _ json: JSONValue, path: String
    ) throws(JSONContractError) -> FieldValue {
        let reader = try JSONReader(json, path: path)
        let name: RecordName = try reader.require("recordName", try reader.identifier("recordName"))
        return .reference(
            RecordReference(RecordID(recordName: name, zoneID: try zoneID(of: reader))))
    }

    private func zoneID(of reader: JSONReader) throws(JSONContractError) -> ZoneID {
        guard let json = reader.value("zoneID") else { return .default }
        guard purpose == .compared, case .object = json else {
            return try ZoneID(json: json, path: reader.path(of: "zoneID"))
        }
        guard let zone = try reader.reader("zoneID") else { return .default }
        let owner: UserID? = try zone.identifier(
            zone.value("ownerRecordName") == nil ? "ownerName" : "ownerRecordName")
        let name = try zone.string("zoneName") ?? ZoneID.defaultName
        guard let zoneID = ZoneID(zoneName: name, ownerRecordName: owner) else {
            throw zone.failure("zoneName", "not a zone name")
        }
        return zoneID
    }
}
