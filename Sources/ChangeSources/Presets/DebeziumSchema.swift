import RelayModel

/// The schema beside a payload: which columns are dates, decimals or bytes.
struct DebeziumSchema {
    private struct Field {
        var type = ""
        var name = ""
        var scale: Int?
        /// The type of an array's elements: one entry if it is known, or else none.
        var elements: [Field] = []
    }

    private var fields: [String: [String: Field]] = [:]

    /// Parses the schema as far as possible.
    ///
    /// Columns without a known type keep their plain values.
    init(_ json: JSONValue?) {
        guard case .object(let schema)? = json, case .array(let images)? = schema["fields"] else {
            return
        }
        for case .object(let image) in images {
            guard case .string(let name)? = image["field"],
                case .array(let columns)? = image["fields"]
            else { continue }
            fields[name] = Self.columns(columns)
        }
    }

    private static func columns(_ columns: [JSONValue]) -> [String: Field] {
        var fields: [String: Field] = [:]
        for case .object(let column) in columns {
            guard case .string(let name)? = column["field"] else { continue }
            fields[name] = field(column)
        }
        return fields
    }

    private static func field(_ column: JSONObject) -> Field {
        var field = Field()
        if case .string(let type)? = column["type"] { field.type = type }
        if case .string(let semantic)? = column["name"] { field.name = semantic }
        if case .object(let parameters)? = column["parameters"],
            case .string(let scale)? = parameters["scale"]
        {
            field.scale = Int(scale)
        }
        if case .object(let items)? = column["items"] { field.elements = [self.field(items)] }
        return field
    }

    /// Returns the row `object` of the image `image`, with each column converted by its schema.
    func fields(_ object: JSONObject, of image: String) -> RecordFields {
        let columns = fields[image] ?? [:]
        var row: RecordFields = [:]
        row.reserveCapacity(object.members.count)
        for member in object.members {
            let plain = FieldValue(plain: member.value)
            row[member.name] = columns[member.name].flatMap { Self.value(plain, $0) } ?? plain
        }
        return row
    }

    private static func value(_ plain: FieldValue, _ field: Field) -> FieldValue? {
        // A value that was not read is a marker of the column's type, and must stay recognisable.
        if UnreadValue.isMeant(by: plain) { return nil }
        if let element = field.elements.first, case .list(let values) = plain {
            return .list(values.map { value($0, element) ?? $0 })
        }
        switch field.name {
        case "io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp":
            return ColumnType.milliseconds.convert(plain, zoneID: .default)
        case "io.debezium.time.MicroTimestamp":
            return ColumnType.microseconds.convert(plain, zoneID: .default)
        case "io.debezium.time.NanoTimestamp":
            return ColumnType.nanoseconds.convert(plain, zoneID: .default)
        case "io.debezium.time.Date", "org.apache.kafka.connect.data.Date":
            return ColumnType.days.convert(plain, zoneID: .default)
        case "io.debezium.time.ZonedTimestamp", "io.debezium.time.IsoTimestamp":
            return ColumnType.timestamp.convert(plain, zoneID: .default)
        case "io.debezium.data.Uuid": return ColumnType.uuid.convert(plain, zoneID: .default)
        case "io.debezium.data.Json": return ColumnType.json.convert(plain, zoneID: .default)
        case "org.apache.kafka.connect.data.Decimal":
            guard case .string(let text) = plain, let bytes = Base64.decode(text) else {
                return nil
            }
            return FieldValue(unscaled: bytes, scale: field.scale ?? 0)
        case "io.debezium.data.VariableScaleDecimal":
            guard case .map(let members) = plain, case .integer(let scale)? = members["scale"],
                case .string(let text)? = members["value"], let bytes = Base64.decode(text)
            else { return nil }
            return FieldValue(unscaled: bytes, scale: Int(clamping: scale))
        default:
            guard field.type == "bytes", case .string(let text) = plain else { return nil }
            return Base64.decode(text).map(FieldValue.bytes)
        }
    }
}
