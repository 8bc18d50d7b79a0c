import RelayModel

// What a value consists of, for whoever walks through it.
extension FieldValue {
    /// The elements of a list or set; those of a set as they come.
    var elements: [FieldValue]? {
        switch self {
        case .list(let values): values
        case .set(let values): Array(values)
        default: nil
        }
    }

    /// The same, where it matters which comes first.
    var elementsInOrder: [FieldValue]? {
        if case .set(let values) = self { values.inOrder } else { elements }
    }

    /// The values of a dictionary's members.
    var memberValues: [FieldValue]? {
        if case .map(let members) = self { Array(members.values) } else { nil }
    }

    /// The same, where it matters which comes first.
    var memberValuesInOrder: [FieldValue]? {
        if case .map(let members) = self { members.valuesInOrder } else { nil }
    }

    /// Whether what stands inside has no order of its own.
    var hasNoOrder: Bool {
        switch self {
        case .set, .map: true
        default: false
        }
    }

    /// The member of that name, or nil.
    func member(_ name: String) -> FieldValue {
        if case .map(let members) = self { members[name] ?? .null } else { .null }
    }

    /// Whether `@count` counts bytes.
    var hasByteCount: Bool {
        switch self {
        case .string, .bytes: true
        default: false
        }
    }

    /// The bytes of a text or of data.
    var byteCount: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        default: 0
        }
    }

    /// How many values stand directly inside; `nil` for what is no collection.
    var elementCount: Int? {
        switch self {
        case .list(let values): values.count
        case .set(let values): values.count
        case .map(let members): members.count
        default: nil
        }
    }
}

// The elements of collections without order, in one: that of the standard library is another in
// every process, and what fires must not be.
extension Set<FieldValue> {
    /// Those of more are left as they come, because ordering them takes longer than whatever is
    /// asked of them; for a sum over them there is `putNumbersInOrder()`.
    static var mostOrdered: Int { 10_000 }

    /// The elements, ordered by themselves; those of more than ``mostOrdered`` as they come.
    var inOrder: [FieldValue] {
        guard (2...Self.mostOrdered).contains(count) else { return Array(self) }
        guard contains(where: { $0.elementCount != nil }) else {
            return sorted { left, right in
                switch RecordOrder.compare(left, right) {
                case .before: true
                case .after: false
                // The same number, as an integer and otherwise.
                case .same: left.numberRank < right.numberRank
                }
            }
        }
        return map { (text: $0.notation.text, value: $0) }
            .sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }.map(\.value)
    }
}

extension RecordFields {
    /// The values, ordered by their names; those of more than ten thousand as they come.
    var valuesInOrder: [FieldValue] {
        guard (2...Set<FieldValue>.mostOrdered).contains(count) else { return Array(values) }
        return sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map(\.value)
    }

    /// The names in order; those of more than ten thousand as they come.
    var namesInOrder: [String] {
        guard (2...Set<FieldValue>.mostOrdered).contains(count) else { return Array(keys) }
        return keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}

extension [FieldValue] {
    /// Puts the numbers in front, the least first, so that what is added up from the front is the
    /// same however they came.
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
        // NaN is neither less nor more than another, and makes NaN of any sum.
        doubles.sort { $0 < $1 || $1.isNaN && !$0.isNaN }
        self = integers.map(FieldValue.integer) + doubles.map(FieldValue.double) + others
    }
}

private extension FieldValue {
    /// The place among numbers that are equal.
    var numberRank: Int {
        switch self {
        case .bool: 0
        case .integer: 1
        default: 2
        }
    }
}

// A value taken for something else.
extension FieldValue {
    /// The value with every number in one form: those forms are equal whose values are equal to
    /// NSPredicate, to which 1, 1.0 and true are the same element.
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

    /// This number as a double; `nil` for everything else, booleans included.
    var numberAsDouble: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// The record name that a Realm object with this primary key has.
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
    /// The value, or the beginning of one that takes more than so many bytes to print: enough that
    /// what is printed of it is longer, too.
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
