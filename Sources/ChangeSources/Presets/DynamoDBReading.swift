import RelayModel

/// DynamoDB stream records.
///
/// They come from a Lambda (`{"Records": […]}`), from EventBridge Pipes (an array), or as the
/// records that DynamoDB writes to a Kinesis stream.
enum DynamoDBReading {
    private static let operations: [String: ChangeOperation] = [
        "insert": .create, "modify": .update, "remove": .delete,
    ]

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        let operation = try reader.operation("eventName", operations)
        let stream = try reader.require("dynamodb", try reader.reader("dynamodb"))
        let keys = try stream.require("Keys", try stream.reader("Keys"))
        var change = ReportedChange(operation, of: try table(reader, item))
        let keyFields = try fields(keys)
        if operation != .create {
            change.before = try image("OldImage", stream, otherwise: keyFields)
        }
        if operation != .delete {
            change.after = try image("NewImage", stream, otherwise: keyFields)
        }
        if operation == .update, change.before?.completeness == .partial { change.before = nil }
        change.recordName = try recordName(keys, keyFields)
        change.occurredAt = occurredAt(stream)
        if let id = try reader.string("eventID"), !id.isEmpty { change.key = (.position, id) }
        return .changes([change])
    }

    /// Returns the table: the part after `table/` of the stream's ARN, unless the mapping names it.
    private static func table(
        _ reader: JSONReader, _ item: SourceItem
    ) throws(JSONContractError) -> ReportedTable {
        if item.source.mapping.table != nil { return try item.configuredTable() }
        // A record from Kinesis has no ARN.
        if reader.object["eventSourceARN"] == nil, let name = try reader.string("tableName"),
            !name.isEmpty
        {
            return ReportedTable(name: name)
        }
        let name = try reader.require("eventSourceARN", try reader.string("eventSourceARN"))
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].hasSuffix(":table"), !parts[1].isEmpty else {
            throw reader.failure("eventSourceARN", "must be the ARN of a table's stream")
        }
        return ReportedTable(name: String(parts[1]))
    }

    /// Returns the key attributes in alphabetical order: a partition key, and possibly a sort key.
    private static func recordName(
        _ keys: JSONReader, _ fields: RecordFields
    ) throws(JSONContractError) -> String {
        var parts: [String] = []
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            guard let text = writtenNumber(keys.object[name], value) ?? value.nameText else {
                throw keys.failure(name, "a key attribute must be of type S, N or B")
            }
            parts.append(fields.count == 1 ? text : text.escapedForJoining)
        }
        guard !parts.isEmpty else {
            throw JSONContractError(path: keys.path, reason: "must name a key attribute")
        }
        return parts.joined(separator: ",")
    }

    /// Returns a number as it was written, if a double would lose some of its 38 digits.
    ///
    /// Otherwise two rows could get the same name.
    private static func writtenNumber(_ json: JSONValue?, _ value: FieldValue) -> String? {
        guard case .double(let number) = value, case .object(let typed)? = json,
            case .string(let text)? = typed["N"]
        else { return nil }
        let digits = DecimalDigits(Array(text.lowercased().utf8)[...])
        let kept = DecimalDigits(Array(number.description.utf8)[...])
        return digits == kept && value.nameText != nil ? nil : text
    }

    /// Returns the image, or the keys alone if the stream's view type leaves the image out.
    private static func image(
        _ name: String, _ stream: JSONReader, otherwise keys: RecordFields
    ) throws(JSONContractError) -> ReportedImage {
        guard let reader = try stream.reader(name) else {
            return ReportedImage(
                fields: keys, completeness: .partial, path: stream.path(of: "Keys"))
        }
        return ReportedImage(
            fields: try fields(reader), completeness: .full, path: reader.path)
    }

    private static func occurredAt(_ stream: JSONReader) -> Timestamp? {
        switch (
            stream.value("ApproximateCreationDateTime"),
            stream.value("ApproximateCreationDateTimePrecision")
        ) {
        // Records in Kinesis name their unit, which is finer than seconds. Early ones used
        // milliseconds without naming it.
        case (.integer(let count)?, .string("MICROSECOND")?):
            Timestamp(count: count, perSecond: 1_000_000).plausible
        case (.integer(let count)?, _) where count > 100_000_000_000:
            Timestamp(count: count, perSecond: 1000).plausible
        case (.integer(let seconds)?, _): Timestamp(seconds: seconds).plausible
        case (.number(let seconds)?, _): Timestamp(secondsSince1970: seconds)?.plausible
        default: nil
        }
    }

    // MARK: - Values

    private static func fields(_ reader: JSONReader) throws(JSONContractError) -> RecordFields {
        do throws(JSONContractError) {
            return try fields(reader.object)
        } catch {
            throw error.inside(reader.path)
        }
    }

    private static func fields(_ object: JSONObject) throws(JSONContractError) -> RecordFields {
        var fields: RecordFields = [:]
        for member in object.members {
            do throws(JSONContractError) {
                fields[member.name] = try value(member.value)
            } catch {
                throw error.inside(member.name)
            }
        }
        return fields
    }

    /// Returns a typed value.
    ///
    /// The path of an error is built only when an error occurs. Otherwise each element of a list
    /// would carry a copy of all names before it, which may be long.
    private static func value(_ json: JSONValue) throws(JSONContractError) -> FieldValue {
        let object = try JSONReader(json).object
        guard let member = object.members.first, object.members.count == 1 else {
            throw JSONContractError(path: "", reason: rule)
        }
        switch (member.name, member.value) {
        case ("S", .string(let text)): return .string(text)
        case ("BOOL", .bool(let flag)): return .bool(flag)
        case ("NULL", _): return .null
        case ("M", .object(let members)):
            do throws(JSONContractError) {
                return .map(try fields(members))
            } catch {
                throw error.inside("M")
            }
        case ("L", .array(let elements)):
            var values: [FieldValue] = []
            for (index, element) in elements.enumerated() {
                do throws(JSONContractError) {
                    values.append(try value(element))
                } catch {
                    throw error.inside("L[\(index)]")
                }
            }
            return .list(values)
        case ("SS", .array(let elements)), ("NS", .array(let elements)),
            ("BS", .array(let elements)):
            let type = String(member.name.prefix(1))
            let values = elements.compactMap { scalar(type, $0) }
            if values.count == elements.count { return .set(Set(values)) }
        default:
            if let scalar = scalar(member.name, member.value) { return scalar }
        }
        throw JSONContractError(path: "", reason: rule)
    }

    private static let rule =
        "must be one of DynamoDB's typed values: S, N, B, BOOL, NULL, M, L, SS, NS, BS"

    /// Returns a text, a number or bytes.
    ///
    /// DynamoDB writes numbers as text to keep their digits.
    private static func scalar(_ type: String, _ json: JSONValue) -> FieldValue? {
        guard case .string(let text) = json else { return nil }
        switch type {
        case "S": return .string(text)
        case "N": return FieldValue(numberText: text)
        case "B": return Base64.decode(text).map(FieldValue.bytes)
        default: return nil
        }
    }
}
