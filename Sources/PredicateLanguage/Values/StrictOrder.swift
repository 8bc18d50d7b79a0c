import RelayModel

/// The order of values in which no kind is taken for another, as Realm, Minapp and Firebase have
/// it.
///
/// Only values of one class are ordered by a comparison; a sort orders all of them: nil, booleans,
/// numbers, texts, data, dates, object IDs, UUIDs, links.
enum StrictOrder {
    /// Whether `left` and `right` satisfy a comparison of order or equality.
    static func holds(
        _ comparator: RecordPredicate.Comparator, _ left: FieldValue, _ right: FieldValue
    ) -> Bool {
        switch comparator {
        case .equal: return isEqual(left, right)
        case .notEqual: return !isEqual(left, right)
        default: break
        }
        if left.isNull, right.isNull {
            return comparator == .lessOrEqual || comparator == .greaterOrEqual
        }
        guard rank(left) == rank(right), !left.isNull, !isUnordered(left, right) else {
            return false
        }
        switch comparator {
        case .less: return precedes(left, right)
        case .greater: return precedes(right, left)
        case .lessOrEqual: return !precedes(right, left)
        default: return !precedes(left, right)
        }
    }

    /// NaN is neither less nor more than any number.
    private static func isUnordered(_ left: FieldValue, _ right: FieldValue) -> Bool {
        if case .double(let number) = left, number.isNaN { return true }
        if case .double(let number) = right, number.isNaN { return true }
        return false
    }

    /// Whether two values are the same; texts byte by byte, numbers by value.
    static func isEqual(_ left: FieldValue, _ right: FieldValue) -> Bool {
        switch (left, right) {
        case (.string(let one), .string(let other)): one.utf8.elementsEqual(other.utf8)
        case (.string(let text), .bytes(let bytes)), (.bytes(let bytes), .string(let text)):
            text.utf8.elementsEqual(bytes)
        case (.integer(let one), .double(let other)), (.double(let other), .integer(let one)):
            other == Double(one) && Int64(exactly: other) == one
        case (.double(let one), .double(let other)): one == other
        case (.map(let members), .reference(let reference)),
            (.reference(let reference), .map(let members)):
            isLink(members, to: reference)
        default: left == right
        }
    }

    /// Whether an object that a record carries in place of a link is the one that is meant, by its
    /// `recordName` or else its primary key `_id`.
    private static func isLink(_ members: RecordFields, to reference: RecordReference) -> Bool {
        let key = (members["recordName"] ?? members["_id"])?.primaryKeyText
        return key?.utf8.elementsEqual(reference.recordID.recordName.rawValue.utf8) ?? false
    }

    /// The total order that a sort goes by.
    static func precedes(_ left: FieldValue, _ right: FieldValue) -> Bool {
        switch (left, right) {
        case (.bool(let one), .bool(let other)): return !one && other
        case (.integer(let one), .integer(let other)): return one < other
        case (.double(let one), .double(let other)): return one < other
        case (.integer(let one), .double(let other)): return precedes(one, other)
        case (.double(let one), .integer(let other)): return follows(other, one)
        case (.string(let one), .string(let other)):
            return one.utf8.lexicographicallyPrecedes(other.utf8)
        case (.bytes(let one), .bytes(let other)), (.objectID(let one), .objectID(let other)):
            return one.lexicographicallyPrecedes(other)
        case (.timestamp(let one), .timestamp(let other)): return one < other
        case (.uuid(let one), .uuid(let other)): return one < other
        default: return rank(left) < rank(right)
        }
    }

    /// Whether an integer is less than a double, by value.
    private static func precedes(_ integer: Int64, _ double: Double) -> Bool {
        if double.isNaN { return false }
        if double >= 0x1p63 { return true }
        if double < -0x1p63 { return false }
        let floor = Int64(double.rounded(.down))
        return integer < floor || (integer == floor && double > Double(floor))
    }

    /// Whether an integer is more than a double, by value.
    private static func follows(_ integer: Int64, _ double: Double) -> Bool {
        if double.isNaN { return false }
        if double >= 0x1p63 { return false }
        if double < -0x1p63 { return true }
        return integer > Int64(double.rounded(.down))
    }

    /// The place of a value's class among the classes.
    private static func rank(_ value: FieldValue) -> Int {
        switch value {
        case .null: 0
        case .bool: 1
        case .integer, .double: 2
        case .string: 3
        case .bytes: 4
        case .timestamp: 5
        case .objectID: 6
        case .uuid: 7
        case .reference: 8
        case .location: 9
        case .list: 10
        case .set: 11
        case .map: 12
        }
    }
}
