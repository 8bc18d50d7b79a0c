package import RelayModel

extension FieldValue {
    /// Creates a value from JSON without interpreting the names of members.
    ///
    /// A database's own JSON column may contain `{"$date": …}`.
    package init(plain json: JSONValue) {
        switch json {
        case .null: self = .null
        case .bool(let flag): self = .bool(flag)
        case .integer(let number): self = .integer(number)
        case .number(let number): self = .double(number)
        case .string(let text): self = .string(text)
        case .array(let elements): self = .list(elements.map(FieldValue.init(plain:)))
        case .object(let object): self = .map(Self.fields(plain: object))
        }
    }

    /// Returns the fields of a row, without interpreting the names of members.
    static func fields(plain object: JSONObject) -> RecordFields {
        var fields: RecordFields = [:]
        fields.reserveCapacity(object.members.count)
        for member in object.members { fields[member.name] = FieldValue(plain: member.value) }
        return fields
    }

    /// Parses a number of any length: exactly if it is a 64-bit integer, or else as the nearest
    /// double.
    init?(numberText text: String) {
        if let integer = Int64(text) {
            self = .integer(integer)
        } else if let first = text.utf8.first, first != 0x2B, !text.lowercased().contains("n"),
            !text.lowercased().contains("x"), let number = Double(text), number.isFinite
        {
            self = .double(number)
        } else {
            return nil
        }
    }

    /// This value as a part of a name, or `nil` if it cannot be one.
    ///
    /// A double has only the first digits of a number beyond 64 bits, so two rows, or two users,
    /// could get the same name.
    var nameText: String? {
        switch self {
        case .string(let text): text
        case .integer(let number): String(number)
        case .double(let number): number.magnitude < 0x1p63 ? String(number) : nil
        case .bool(let flag): flag ? "true" : "false"
        case .uuid(let uuid): uuid.description
        case .objectID(let bytes): Hexadecimal.encode(bytes)
        case .bytes(let bytes): Base64.encode(bytes)
        case .timestamp(let moment): moment.nameText
        case .reference(let reference): reference.recordID.recordName.rawValue
        case .null, .location, .list, .set, .map: nil
        }
    }
}

extension Timestamp {
    /// The milliseconds since 1970, with a fraction if there is one, so that no two moments share a
    /// name.
    var nameText: String {
        let beyond = nanoseconds % 1_000_000
        guard beyond != 0 else { return String(milliseconds) }
        var digits = String(String(1_000_000 + beyond).dropFirst())
        while digits.last == "0" { digits.removeLast() }
        return "\(milliseconds).\(digits)"
    }

    /// Creates a moment from a count of units since 1970, of which `perSecond` make a second.
    init(count: Int64, perSecond: Int64) {
        let (quotient, remainder) = count.quotientAndRemainder(dividingBy: perSecond)
        let isBelow = remainder < 0
        self.init(
            seconds: isBelow ? quotient - 1 : quotient,
            nanoseconds: Int32(
                (isBelow ? remainder + perSecond : remainder) * (1_000_000_000 / perSecond)))
    }

    /// This moment if it lies in the years 0001 to 9999, or else `nil`.
    ///
    /// So arithmetic is safe, and wrong units are detected.
    var plausible: Timestamp? { isPlausible ? self : nil }
}

/// Locations in the notations that databases use.
enum LocationText {
    /// Returns the location that `value` describes, or `nil`.
    static func location(_ value: FieldValue) -> Location? {
        switch value {
        case .location(let place): place
        case .map(let members): location(members)
        case .string(let text): location(text)
        default: nil
        }
    }

    private static func location(_ members: RecordFields) -> Location? {
        if case .string("Point")? = members["type"],
            case .list(let parts)? = members["coordinates"],
            parts.count >= 2
        {
            return location(latitude: parts[1], longitude: parts[0])
        }
        let latitude = members["latitude"] ?? members["lat"]
        let longitude = members["longitude"] ?? members["lng"] ?? members["lon"]
        return location(latitude: latitude, longitude: longitude)
    }

    private static func location(latitude: FieldValue?, longitude: FieldValue?) -> Location? {
        guard let latitude = number(latitude), let longitude = number(longitude) else { return nil }
        return Location(latitude: latitude, longitude: longitude)
    }

    private static func number(_ value: FieldValue?) -> Double? {
        switch value {
        case .integer(let number)?: Double(number)
        case .double(let number)?: number
        case .string(let text)?: Double(text)
        default: nil
        }
    }

    /// Parses `lat,lng`, or the well-known text `POINT(lng lat)`, optionally with `SRID=4326;`
    /// before it.
    private static func location(_ text: String) -> Location? {
        let upper = text.uppercased()
        let shape = upper.hasPrefix("SRID=4326;") ? upper.dropFirst(10) : upper[...]
        if shape.hasPrefix("POINT"), let open = shape.firstIndex(of: "("), shape.last == ")" {
            let inner = shape[shape.index(after: open)...].dropLast()
            let parts = inner.split(separator: " ")
            guard parts.count == 2, let longitude = Double(parts[0]),
                let latitude = Double(parts[1])
            else { return nil }
            return Location(latitude: latitude, longitude: longitude)
        }
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 2, let latitude = Double(parts[0].filter { $0 != " " }),
            let longitude = Double(parts[1].filter { $0 != " " })
        else { return nil }
        return Location(latitude: latitude, longitude: longitude)
    }
}
