import RelayModel

/// The order of values in Realm, Minapp and Firebase, which do not treat values of different kinds
/// as equal.
///
/// A comparison orders only values of the same class. A sort orders all of them: nil, booleans,
/// numbers, texts, data, dates, object IDs, UUIDs, links, locations, lists, sets, dictionaries.
enum StrictOrder {
    /// Returns whether `left` and `right` satisfy a comparison of order or equality.
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

    /// Returns whether one of the values is NaN, which is neither less nor greater than any number.
    private static func isUnordered(_ left: FieldValue, _ right: FieldValue) -> Bool {
        if case .double(let number) = left, number.isNaN { return true }
        if case .double(let number) = right, number.isNaN { return true }
        return false
    }

    /// Returns whether two values are equal.
    ///
    /// Texts are compared byte by byte, and numbers by value.
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

    /// Returns whether an embedded object, which a record contains instead of a link, represents
    /// the linked record.
    ///
    /// The object's name is its `recordName`, or else its primary key `_id`.
    private static func isLink(_ members: RecordFields, to reference: RecordReference) -> Bool {
        let key = (members["recordName"] ?? members["_id"])?.primaryKeyText
        return key?.utf8.elementsEqual(reference.recordID.recordName.rawValue.utf8) ?? false
    }

    /// Returns whether `left` precedes `right` in the total order of a sort.
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

    /// Returns whether an integer is less than a double, by value.
    private static func precedes(_ integer: Int64, _ double: Double) -> Bool {
        if double.isNaN { return false }
        if double >= 0x1p63 { return true }
        if double < -0x1p63 { return false }
        let floor = Int64(double.rounded(.down))
        return integer < floor || (integer == floor && double > Double(floor))
    }

    /// Returns whether an integer is greater than a double, by value.
    private static func follows(_ integer: Int64, _ double: Double) -> Bool {
        if double.isNaN { return false }
        if double >= 0x1p63 { return false }
        if double < -0x1p63 { return true }
        return integer > Int64(double.rounded(.down))
    }

    /// Returns the rank of a value's class.
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
