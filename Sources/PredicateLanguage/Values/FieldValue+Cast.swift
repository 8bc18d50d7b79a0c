import RelayModel

extension FieldValue {
    /// Returns this value as another type.
    ///
    /// - Throws: ``EvaluationError/badCast(found:type:)`` if the conversion is not defined.
    func cast(to type: RecordPredicate.CastType) throws(EvaluationError) -> FieldValue {
        if isNull { return .null }
        guard let result = converted(to: type) else {
            throw .badCast(found: kind, type: type.rawValue)
        }
        return result
    }

    private func converted(to type: RecordPredicate.CastType) -> FieldValue? {
        switch type {
        case .date: asDate
        case .number: asNumber
        case .string: .string(plainText)
        case .data: asData
        case .uuid: asUUID
        case .set: asSet
        case .dictionary: asDictionary
        case .location: asLocation
        case .reference: asReference
        case .objectID: asObjectID
        }
    }

    private var asDate: FieldValue? {
        switch self {
        case .timestamp: self
        case .integer(let seconds):
            seconds.magnitude < 9_000_000_000_000_000
                ? .timestamp(Timestamp(seconds: seconds + Int64(Timestamp.secondsTo2001))) : nil
        case .double(let seconds):
            Timestamp(secondsSince1970: seconds + Timestamp.secondsTo2001).map(Self.timestamp)
        default: nil
        }
    }

    private var asNumber: FieldValue? {
        switch self {
        case .integer, .double: return self
        case .bool(let flag): return .integer(flag ? 1 : 0)
        case .timestamp(let moment):
            let seconds = moment.seconds.subtractingReportingOverflow(
                Int64(Timestamp.secondsTo2001))
            guard !seconds.overflow else { return nil }
            return moment.nanoseconds == 0
                ? .integer(seconds.partialValue)
                : .double(Double(seconds.partialValue) + Double(moment.nanoseconds) / 1e9)
        case .string(let text):
            if let number = Int64(text) { return .integer(number) }
            return Double(text).map(Self.double)
        default: return nil
        }
    }

    private var asData: FieldValue? {
        switch self {
        case .bytes: self
        case .string(let text): Base64.decode(text).map(Self.bytes)
        default: nil
        }
    }

    private var asUUID: FieldValue? {
        switch self {
        case .uuid: self
        case .string(let text): UUIDBytes(text).map(Self.uuid)
        default: nil
        }
    }

    private var asSet: FieldValue? {
        switch self {
        case .set: self
        case .list(let values): .set(Set(values))
        default: nil
        }
    }

    private var asDictionary: FieldValue? {
        if case .map = self { return self }
        guard case .list(let values) = self, values.count.isMultiple(of: 2) else { return nil }
        var members: [String: FieldValue] = [:]
        for index in stride(from: 0, to: values.count, by: 2) {
            guard case .string(let key) = values[index] else { return nil }
            members[key] = values[index + 1]
        }
        return .map(members)
    }

    private var asLocation: FieldValue? {
        if case .location = self { return self }
        guard case .list(let values) = self, values.count == 2,
            let latitude = values[0].double, let longitude = values[1].double
        else { return nil }
        return Location(latitude: latitude, longitude: longitude).map(Self.location)
    }

    private var asReference: FieldValue? {
        var names: [String] = []
        switch self {
        case .reference: return self
        case .string(let name): names = [name]
        case .list(let values):
            for value in values {
                guard case .string(let name) = value else { return nil }
                names.append(name)
            }
        default: return nil
        }
        guard (1...3).contains(names.count), let recordName = RecordName(rawValue: names[0])
        else { return nil }
        guard names.count > 1 else {
            return .reference(RecordReference(RecordID(recordName: recordName, zoneID: .default)))
        }
        let owner = names.count > 2 ? UserID(rawValue: names[2]) : nil
        guard names.count < 3 || owner != nil,
            let zone = ZoneID(zoneName: names[1], ownerRecordName: owner)
        else { return nil }
        return .reference(RecordReference(RecordID(recordName: recordName, zoneID: zone)))
    }

    private var asObjectID: FieldValue? {
        switch self {
        case .objectID: self
        case .string(let text):
            Hexadecimal.decode(text).flatMap { $0.count == 12 ? .objectID($0) : nil }
        default: nil
        }
    }

    /// The number as a double.
    ///
    /// Booleans count as numbers.
    var double: Double? {
        switch self {
        case .bool(let flag): flag ? 1 : 0
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// The value as text, for people and for `CAST(…, "NSString")`.
    var plainText: String {
        switch self {
        case .null: "nil"
        case .bool(let flag): flag ? "1" : "0"
        case .string(let text): text
        case .uuid(let uuid): uuid.description
        case .objectID(let bytes): Hexadecimal.encode(bytes)
        case .reference(let reference): reference.recordID.recordName.rawValue
        default: FormatPrinter.text(of: self)
        }
    }
}

extension Timestamp {
    /// Creates a timestamp from decimal seconds since 2001-01-01, to the nanosecond.
    ///
    /// Returns `nil` if `text` is not a plain decimal number in range.
    init?(decimalSecondsSince2001 text: String) {
        var digits = Substring(text)
        let isNegative = digits.first == "-"
        if isNegative { digits = digits.dropFirst() }
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), parts[0].utf8.count <= 20,
            let whole = Int128(parts[0]), parts[0].utf8.first != UInt8(ascii: "+")
        else { return nil }
        var nanoseconds: Int64 = 0
        if parts.count == 2 {
            let fraction = parts[1].prefix(9)
            guard let value = Int64(fraction), fraction.utf8.first != UInt8(ascii: "+"),
                parts[1].utf8.allSatisfy(\.isDigit)
            else { return nil }
            nanoseconds = value
            for _ in fraction.utf8.count..<9 { nanoseconds *= 10 }
        }
        var seconds = isNegative ? -whole : whole
        if isNegative, nanoseconds > 0 {
            seconds -= 1
            nanoseconds = 1_000_000_000 - nanoseconds
        }
        guard let exact = Int64(exactly: seconds + Int128(Self.secondsTo2001)) else { return nil }
        self.init(seconds: exact, nanoseconds: Int32(nanoseconds))
    }
}
