/// The relay's own notation of values: JSON, with one-member objects for the kinds that JSON lacks.
///
/// | written | means |
/// |---|---|
/// | `{"$date": s}` | a date, `s` seconds since 1970 |
/// | `{"$refdate": s}` | a date, `s` seconds since 2001 (read only) |
/// | `{"$ts": [s, ns]}` | a date, exact to the nanosecond |
/// | `{"$geo": [lat, lng]}` | a location |
/// | `{"$ref": "name"}` | a reference; `{"$ref": "name", "$zone": …, "$owner": …}` outside the default zone |
/// | `{"$bytes": "base64"}`, `{"$uuid": "…"}`, `{"$oid": "24 hex digits"}` | data, UUID, object ID |
/// | `{"$set": […]}` | a set |
/// | `{"$map": {…}}` | a dictionary, where a member's name begins with `$` |
/// | `{…, "$dict": true}` | a dictionary without that member (read only) |
extension FieldValue {
    /// Reads a value from its notation.
    ///
    /// - Throws: ``JSONContractError`` if an object has a member that begins with `$` and is not
    ///   part of the notation, or that has the wrong content.
    public init(notation json: JSONValue, path: String = "") throws(JSONContractError) {
        do throws(JSONContractError) {
            self = try Self.value(json)
        } catch {
            throw error.inside(path)
        }
    }

    private static func value(_ json: JSONValue) throws(JSONContractError) -> FieldValue {
        switch json {
        case .null: return .null
        case .bool(let flag): return .bool(flag)
        case .integer(let number): return .integer(number)
        case .number(let number): return .double(number)
        case .string(let text): return .string(text)
        case .array(let elements): return .list(try values(elements))
        case .object(var object):
            if object["$dict"] == .bool(true) { object["$dict"] = nil }
            if let first = object.members.first, first.name.utf8.first == UInt8(ascii: "$") {
                return try tagged(first.name, object)
            }
            return .map(try fields(notation: object))
        }
    }

    /// Reads the fields of a record, each in its notation.
    ///
    /// - Throws: ``JSONContractError`` at the first field that cannot be read.
    public static func fields(
        notation object: JSONObject, path: String = ""
    ) throws(JSONContractError) -> RecordFields {
        var fields: RecordFields = [:]
        fields.reserveCapacity(object.members.count)
        for member in object.members {
            do throws(JSONContractError) {
                fields[member.name] = try value(member.value)
            } catch {
                throw error.inside(member.name).inside(path)
            }
        }
        return fields
    }

    /// This value in its notation; reading it again gives an equal value.
    public var notation: JSONValue {
        switch self {
        case .null: .null
        case .bool(let flag): .bool(flag)
        case .integer(let number): .integer(number)
        case .double(let number): Self.notation(of: number)
        case .string(let text): .string(text)
        case .timestamp(let moment):
            ["$ts": [.integer(moment.seconds), .integer(Int64(moment.nanoseconds))]]
        case .bytes(let bytes): ["$bytes": .string(Base64.encode(bytes))]
        case .reference(let reference): Self.notation(of: reference.recordID)
        case .location(let place): ["$geo": [.number(place.latitude), .number(place.longitude)]]
        case .uuid(let uuid): ["$uuid": .string(uuid.description)]
        case .objectID(let bytes): ["$oid": .string(Hexadecimal.encode(bytes))]
        case .list(let values): .array(values.map(\.notation))
        case .set(let values): ["$set": .array(values.map(\.notation).orderedByText)]
        case .map(let members): Self.notation(of: members)
        }
    }

    /// The fields of a record in their notation, ordered by name.
    public static func notation(fields: RecordFields) -> JSONObject {
        JSONObject(
            fields.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value.notation) })
    }

    private static func values(
        _ elements: [JSONValue]
    ) throws(JSONContractError) -> [FieldValue] {
        var values: [FieldValue] = []
        values.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            do throws(JSONContractError) {
                values.append(try value(element))
            } catch {
                throw error.inside("[\(index)]")
            }
        }
        return values
    }

    private static func tagged(
        _ tag: String, _ object: JSONObject
    ) throws(JSONContractError) -> FieldValue {
        let value = object.members[0].value
        if tag == "$ref" { return try reference(object) }
        guard object.members.count == 1 else {
            throw JSONContractError(
                path: "", reason: "\(tag) must be the only member of its object")
        }
        switch (tag, value) {
        case ("$map", .object(let members)): return .map(try fields(notation: members))
        case ("$set", .array(let elements)): return .set(Set(try values(elements)))
        default:
            guard let scalar = scalar(tag, value) else {
                throw JSONContractError(path: "", reason: refusal(of: tag, value))
            }
            return scalar
        }
    }

    /// The expected content of each tagged member, for error messages.
    private static let contents: [String: String] = [
        "$date": "seconds since 1970", "$refdate": "seconds since 2001",
        "$ts": "[seconds, nanoseconds] since 1970", "$geo": "[latitude, longitude] in degrees",
        "$ref": "the name of a record", "$bytes": "Base64", "$uuid": "a UUID",
        "$oid": "24 hexadecimal digits", "$set": "a list", "$map": "an object",
    ]

    /// Returns why an object whose member is `tag` does not make a value.
    private static func refusal(of tag: String, _ value: JSONValue) -> String {
        if let content = contents[tag] { return "\(tag) takes \(content), found \(value.kind)" }
        return "\(tag.prefix(60)) is not a known kind of value; allowed are "
            + contents.keys.sorted().joined(separator: ", ")
    }

    private static func scalar(_ tag: String, _ value: JSONValue) -> FieldValue? {
        switch (tag, value) {
        case ("$date", _):
            value.double.flatMap(Timestamp.init(secondsSince1970:)).map(FieldValue.timestamp)
        case ("$refdate", _):
            value.double.flatMap { Timestamp(secondsSince1970: $0 + Timestamp.secondsTo2001) }
                .map(FieldValue.timestamp)
        case ("$ts", .array(let parts)): timestamp(parts).map(FieldValue.timestamp)
        case ("$geo", .array(let parts)): location(parts).map(FieldValue.location)
        case ("$bytes", .string(let text)): Base64.decode(text).map(FieldValue.bytes)
        case ("$uuid", .string(let text)): UUIDBytes(text).map(FieldValue.uuid)
        case ("$oid", .string(let text)):
            Hexadecimal.decode(text).flatMap { $0.count == 12 ? FieldValue.objectID($0) : nil }
        default: nil
        }
    }

    private static func timestamp(_ parts: [JSONValue]) -> Timestamp? {
        guard parts.count == 2, case .integer(let seconds) = parts[0],
            case .integer(let nanoseconds) = parts[1]
        else { return nil }
        if (0..<1_000_000_000).contains(nanoseconds) {
            return Timestamp(seconds: seconds, nanoseconds: Int32(nanoseconds))
        }
        return Timestamp(seconds: seconds, signedNanoseconds: nanoseconds)
    }

    private static func location(_ parts: [JSONValue]) -> Location? {
        guard parts.count == 2, let latitude = parts[0].double, let longitude = parts[1].double
        else { return nil }
        return Location(latitude: latitude, longitude: longitude)
    }

    private static func reference(_ object: JSONObject) throws(JSONContractError) -> FieldValue {
        let reader = try JSONReader(.object(object), path: "")
        try reader.allowOnly(["$ref", "$zone", "$owner"])
        let name: RecordName = try reader.require("$ref", try reader.identifier("$ref"))
        let owner: UserID? = try reader.identifier("$owner")
        let zoneName = try reader.string("$zone") ?? ZoneID.defaultName
        guard let zoneID = ZoneID(zoneName: zoneName, ownerRecordName: owner) else {
            throw reader.failure("$zone", "not a zone name")
        }
        return .reference(RecordReference(RecordID(recordName: name, zoneID: zoneID)))
    }

    private static func notation(of recordID: RecordID) -> JSONValue {
        var object: JSONObject = ["$ref": .string(recordID.recordName.rawValue)]
        if recordID.zoneID != .default {
            object["$zone"] = .string(recordID.zoneID.zoneName)
            object["$owner"] = recordID.zoneID.ownerRecordName.map { .string($0.rawValue) }
        }
        return .object(object)
    }

    private static func notation(of members: RecordFields) -> JSONValue {
        let object = JSONValue.object(notation(fields: members))
        return members.keys.contains(where: isTag) ? ["$map": object] : object
    }

    /// Returns whether an object that has a member of this name would be read as a tagged value.
    static func isTag(_ name: String) -> Bool { name.utf8.first == UInt8(ascii: "$") }

    /// JSON has no infinities or NaN, so these are written as `null`; records hardly ever hold
    /// them.
    private static func notation(of number: Double) -> JSONValue {
        number.isFinite ? .number(number) : .null
    }
}

extension Timestamp {
    /// The seconds from 1970-01-01 to 2001-01-01, Apple's reference date.
    public static let secondsTo2001 = 978_307_200.0
}

extension JSONValue {
    /// This number as a double, or `nil` if it is not a number.
    public var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
