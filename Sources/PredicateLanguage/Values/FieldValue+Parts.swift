import RelayModel

// The contents of values.
extension FieldValue {
    /// The elements of a list or set.
    ///
    /// The elements of a set are in no particular order.
    var elements: [FieldValue]? {
        switch self {
        case .list(let values): values
        case .set(let values): Array(values)
        default: nil
        }
    }

    /// The elements of a list or set, in a deterministic order.
    var elementsInOrder: [FieldValue]? {
        if case .set(let values) = self { values.inOrder } else { elements }
    }

    /// The values of a dictionary's members, in no particular order.
    var memberValues: [FieldValue]? {
        if case .map(let members) = self { Array(members.values) } else { nil }
    }

    /// The values of a dictionary's members, in a deterministic order.
    var memberValuesInOrder: [FieldValue]? {
        if case .map(let members) = self { members.valuesInOrder } else { nil }
    }

    /// Whether the elements of this value have no order of their own.
    var hasNoOrder: Bool {
        switch self {
        case .set, .map: true
        default: false
        }
    }

    /// Returns the member with the given name, or nil.
    func member(_ name: String) -> FieldValue {
        if case .map(let members) = self { members[name] ?? .null } else { .null }
    }

    /// Whether `@count` is the number of bytes of this value.
    var hasByteCount: Bool {
        switch self {
        case .string, .bytes: true
        default: false
        }
    }

    /// The number of bytes of a text or of binary data.
    ///
    /// It is 0 for other values.
    var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        default: 0
        }
    }

    /// The number of elements directly inside, or `nil` if the value is not a collection.
    var elementCount: Int? {
        switch self {
        case .list(let values): values.count
        case .set(let values): values.count
        case .map(let members): members.count
        default: nil
        }
    }
}

// Deterministic orders for unordered collections. The standard library's order differs in every
// process, but the same changes must fire the same subscriptions.
extension Set<FieldValue> {
    /// The maximum number of elements to sort.
    ///
    /// Sorting larger collections takes longer than the operations on them. For sums over them
    /// there is `putNumbersInOrder()`.
    static var mostOrdered: Int { 10_000 }

    /// The elements, sorted.
    ///
    /// More than ``mostOrdered`` elements are returned unsorted.
    var inOrder: [FieldValue] {
        guard (2...Self.mostOrdered).contains(count) else { return Array(self) }
        guard contains(where: { $0.elementCount != nil }) else {
            return sorted { left, right in
                switch RecordOrder.compare(left, right) {
                case .before: true
                case .after: false
                // The same number, as an integer and as another kind.
                case .same: left.numberRank < right.numberRank
                }
            }
        }
        return map { (text: $0.notation.text, value: $0) }
            .sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }.map(\.value)
    }
}

extension RecordFields {
    /// The values, sorted by their names.
    ///
    /// More than ten thousand values are returned unsorted.
    var valuesInOrder: [FieldValue] {
        guard (2...Set<FieldValue>.mostOrdered).contains(count) else { return Array(values) }
        return sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map(\.value)
    }

    /// The names, sorted.
    ///
    /// More than ten thousand names are returned unsorted.
    var namesInOrder: [String] {
        guard (2...Set<FieldValue>.mostOrdered).contains(count) else { return Array(keys) }
        return keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}

extension [FieldValue] {
    /// Moves the numbers to the front, least first, so that their sum does not depend on their
    /// original order.
    mutating func putNumbersInOrder() {
        var integers: [Int64] = []
        var doubles: [Double] = []
        var others: [FieldValue] = []
        for value in self {
            switch value {
            case .integer(let number): integers.append(number)
            case .double(let number): doubles.append(number)
            default: others.append(value)
            }
        }
        integers.sort()
        // NaN is neither less nor greater than any number. Any sum with NaN is NaN.
        doubles.sort { $0 < $1 || $1.isNaN && !$0.isNaN }
        self = integers.map(FieldValue.integer) + doubles.map(FieldValue.double) + others
    }
}

private extension FieldValue {
    /// The order of equal numbers of different kinds.
    var numberRank: Int {
        switch self {
        case .bool: 0
        case .integer: 1
        default: 2
        }
    }
}

// Values in other forms.
extension FieldValue {
    /// The value with all numbers in one form.
    ///
    /// The forms of two values are equal if the values are equal to NSPredicate, which treats 1,
    /// 1.0 and true as the same element.
    var inOneForm: FieldValue {
        switch self {
        case .bool(let flag): .integer(flag ? 1 : 0)
        case .double(let number): Int64(exactly: number).map(FieldValue.integer) ?? self
        case .list(let values): .list(values.map(\.inOneForm))
        case .set(let values): .set(Set(values.map(\.inOneForm)))
        case .map(let members): .map(members.mapValues(\.inOneForm))
        default: self
        }
    }

    /// The number as a double, or `nil` for any other value.
    ///
    /// Booleans do not count as numbers.
    var numberAsDouble: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// The name of the record that represents a Realm object with this primary key.
    var primaryKeyText: String? {
        switch self {
        case .string(let text): text
        case .integer(let number): String(number)
        case .uuid(let uuid): uuid.description
        case .objectID(let bytes): Hexadecimal.encode(bytes)
        default: nil
        }
    }
}

// Values that are too long to be shown.
extension FieldValue {
    /// Returns the value, cut if it takes more than `bytes` bytes to print.
    ///
    /// Enough is kept that the printed text is still longer than that.
    func beginning(_ bytes: Int) -> FieldValue {
        var left = bytes
        return beginning(within: &left)
    }

    private func beginning(within left: inout Int) -> FieldValue {
        left -= 1
        switch self {
        case .string(let text):
            defer { left -= text.utf8.count }
            guard text.utf8.count > max(left, 0) else { return self }
            return .string(String(text.unicodeScalars.prefix(max(left, 0) + 1)))
        case .bytes(let content):
            defer { left -= content.count }
            return content.count > max(left, 0)
                ? .bytes(Array(content.prefix(max(left, 0) + 1))) : self
        case .list(let values): return .list(Self.beginnings(of: values, &left))
        case .set(let values): return .set(Set(Self.beginnings(of: values.inOrder, &left)))
        case .map(let members):
            var begun: RecordFields = [:]
            for name in members.namesInOrder where left > 0 {
                left -= name.utf8.count
                begun[name] = members[name]?.beginning(within: &left)
            }
            return .map(begun)
        default: return self
        }
    }

    private static func beginnings(of values: [FieldValue], _ left: inout Int) -> [FieldValue] {
        var begun: [FieldValue] = []
        for value in values {
            guard left > 0 else { break }
            begun.append(value.beginning(within: &left))
        }
        return begun
    }
}
