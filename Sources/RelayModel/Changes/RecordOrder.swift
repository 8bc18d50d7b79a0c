/// The order of values by which records are sorted: null first, then numbers, dates, texts, and the
/// other kinds, each kind by itself.
///
/// The order is total and transitive, so that a sorted list has one order and can be searched.
/// Texts compare by their bytes. Numbers compare exactly, whatever their type, and NaN comes before
/// all other numbers. All lists, sets and dictionaries compare as the same.
public enum RecordOrder {
    /// The order of two values.
    public enum Outcome: Sendable, Hashable {
        /// The left one comes first.
        case before
        /// Neither value comes first.
        case same
        /// The right one comes first.
        case after
    }

    /// Returns the order of `left` and `right`.
    public static func compare(_ left: FieldValue, _ right: FieldValue) -> Outcome {
        let ranks = (rank(left), rank(right))
        guard ranks.0 == ranks.1 else { return ranks.0 < ranks.1 ? .before : .after }
        switch (left, right) {
        case (.string(let first), .string(let second)): return texts(first, second)
        case (.timestamp(let first), .timestamp(let second)): return order(first, second)
        case (.reference(let first), .reference(let second)):
            return references(first.recordID, second.recordID)
        case (.location(let first), .location(let second)):
            let latitudes = order(first.latitude, second.latitude)
            return latitudes == .same ? order(first.longitude, second.longitude) : latitudes
        case (.list, _), (.set, _), (.map, _), (.null, _): return .same
        default: break
        }
        if let first = bytes(left), let second = bytes(right) { return sequences(first, second) }
        return numbers(left, right)
    }

    private static func rank(_ value: FieldValue) -> Int {
        switch value {
        case .null: 0
        case .bool, .integer, .double: 1
        case .timestamp: 2
        case .string: 3
        case .bytes, .objectID, .uuid: 4
        case .reference: 5
        case .location: 6
        case .list, .set, .map: 7
        }
    }

    private static func order<Value: Comparable>(_ left: Value, _ right: Value) -> Outcome {
        left < right ? .before : right < left ? .after : .same
    }

    /// Compares by bytes: two spellings of one letter are equal as Swift strings, but differ here.
    private static func texts(_ left: String, _ right: String) -> Outcome {
        sequences(left.utf8, right.utf8)
    }

    private static func sequences<Bytes: Sequence<UInt8>>(
        _ left: Bytes, _ right: Bytes
    ) -> Outcome {
        if left.lexicographicallyPrecedes(right) { return .before }
        return right.lexicographicallyPrecedes(left) ? .after : .same
    }

    private static func bytes(_ value: FieldValue) -> [UInt8]? {
        switch value {
        case .bytes(let bytes), .objectID(let bytes): bytes
        case .uuid(let uuid): uuid.bytes
        default: nil
        }
    }

    /// Compares two records by name, then by zone.
    public static func references(_ left: RecordID, _ right: RecordID) -> Outcome {
        let names = texts(left.recordName.rawValue, right.recordName.rawValue)
        return names == .same ? zones(left.zoneID, right.zoneID) : names
    }

    /// Compares two records by zone, then by name.
    public static func places(_ left: RecordID, _ right: RecordID) -> Outcome {
        let order = zones(left.zoneID, right.zoneID)
        guard order == .same else { return order }
        return texts(left.recordName.rawValue, right.recordName.rawValue)
    }

    /// Compares two zones by owner, then by name.
    public static func zones(_ left: ZoneID, _ right: ZoneID) -> Outcome {
        guard left != right else { return .same }
        let owners = texts(
            left.ownerRecordName?.rawValue ?? "", right.ownerRecordName?.rawValue ?? "")
        return owners == .same ? texts(left.zoneName, right.zoneName) : owners
    }

    // MARK: Numbers

    private enum Number {
        case integer(Int64)
        case double(Double)

        init(_ value: FieldValue) {
            switch value {
            case .bool(let flag): self = .integer(flag ? 1 : 0)
            case .integer(let number): self = .integer(number)
            case .double(let number): self = .double(number)
            default: self = .integer(0)
            }
        }
    }

    private static func numbers(_ left: FieldValue, _ right: FieldValue) -> Outcome {
        switch (Number(left), Number(right)) {
        case (.integer(let first), .integer(let second)): order(first, second)
        case (.double(let first), .double(let second)): doubles(first, second)
        case (.integer(let first), .double(let second)): mixed(first, second)
        case (.double(let first), .integer(let second)): reversed(mixed(second, first))
        }
    }

    private static func doubles(_ left: Double, _ right: Double) -> Outcome {
        switch (left.isNaN, right.isNaN) {
        case (true, true): .same
        case (true, false): .before
        case (false, true): .after
        case (false, false): order(left, right)
        }
    }

    /// Compares exactly: beyond 2^53 an integer may differ from the nearest double.
    private static func mixed(_ integer: Int64, _ double: Double) -> Outcome {
        if double.isNaN { return .after }
        guard let whole = Int64(exactly: double.rounded(.towardZero)) else {
            return double > 0 ? .before : .after
        }
        if integer != whole { return order(integer, whole) }
        return order(0, double - Double(whole))
    }

    private static func reversed(_ outcome: Outcome) -> Outcome {
        switch outcome {
        case .before: .after
        case .same: .same
        case .after: .before
        }
    }
}
