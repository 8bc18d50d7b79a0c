/// A JSON value that keeps integers exact and the members of an object in their written order.
///
/// Foundation's decoders lose information that a relay needs: whether a number was written as an
/// integer, the order of members, whether a name occurs twice, and the place of an error.
public enum JSONValue: Sendable, Hashable {
    /// The literal `null`.
    case null
    /// A truth value.
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int64)
    /// Any other number, rounded to the nearest double.
    case number(Double)
    /// A text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)

    /// The word for this value's kind, as error messages use it.
    public var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer: "an integer"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// The members of a JSON object, in the order in which they were written.
///
/// Look-ups scan, because the objects of this contract have a few dozen members at most, for which
/// a scan is faster than hashing.
public struct JSONObject: Sendable {
    /// The members, in order.
    ///
    /// Names are unique when the object came from
    /// ``JSONValue/init(parsing:)-(String)``.
    public var members: [(name: String, value: JSONValue)]

    /// Creates an object from members in order.
    public init(_ members: [(name: String, value: JSONValue)] = []) {
        self.members = members
    }

    /// The value of the member `name`; setting `nil` removes the member, setting a new name appends
    /// it.
    public subscript(name: String) -> JSONValue? {
        get {
            for member in members where member.name == name {
                return member.value
            }
            return nil
        }
        set {
            let index = members.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append((name, value))
            case (nil, nil): break
            }
        }
    }
}

extension JSONObject: Hashable {
    /// Returns whether two objects have the same members, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.members.count == right.members.count else { return false }
        guard left.members.count > few else {
            return left.members.allSatisfy { right[$0.name] == $0.value }
        }
        let known = right.byName
        return left.members.allSatisfy { known[$0.name] == $0.value }
    }

    /// Up to this number of members, a scan is faster than building a dictionary.
    private static let few = 16

    /// The members by name, for comparisons of large objects; each use of ``subscript(_:)`` would
    /// scan all members.
    private var byName: [String: JSONValue] {
        Dictionary(members.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// Returns this object with the members of `other` replacing its own; a `null` in `other`
    /// removes the member.
    package func overlaid(by other: [(name: String, value: JSONValue)]) -> JSONObject {
        var values = members.map { Optional($0.value) }
        var names = members.map(\.name)
        var places = Dictionary(
            names.enumerated().map { ($0.element, $0.offset) },
            uniquingKeysWith: { first, _ in first })
        for member in other {
            let value: JSONValue? = member.value == .null ? nil : member.value
            if let place = places[member.name] {
                values[place] = value
            } else if let value {
                places[member.name] = names.count
                names.append(member.name)
                values.append(value)
            }
        }
        return JSONObject(
            zip(names, values).compactMap { name, value in value.map { (name: name, value: $0) } })
    }

    /// Replaces the members with these names by those of `other`; a member that `other` lacks is
    /// removed.
    package mutating func take(_ names: some Sequence<String>, from other: JSONObject) {
        guard !members.isEmpty || !other.members.isEmpty else { return }
        let taken = Set(names)
        members.removeAll { taken.contains($0.name) }
        members += other.members.filter { taken.contains($0.name) }
    }

    /// Hashes the members without regard to their order.
    public func hash(into hasher: inout Hasher) {
        var sum = 0
        for member in members {
            var inner = Hasher()
            inner.combine(member.name)
            inner.combine(member.value)
            sum &+= inner.finalize()
        }
        hasher.combine(sum)
    }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// Creates an object from a literal; members keep the literal's order.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        members = elements.map { (name: $0.0, value: $0.1) }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates a text from a literal.
    public init(stringLiteral value: String) {
        self = .string(value)
    }

    /// Creates an integer from a literal.
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }

    /// Creates a boolean from a literal.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }

    /// Creates an array from a literal.
    public init(arrayLiteral elements: JSONValue...) {
        self = .array(elements)
    }

    /// Creates an object from a literal; members keep the literal's order.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements.map { (name: $0.0, value: $0.1) }))
    }
}

extension JSONValue {
    /// This value with the members of every object sorted by the bytes of their names.
    package var withMembersByName: JSONValue {
        switch self {
        case .array(let elements): .array(elements.map(\.withMembersByName))
        case .object(let object):
            .object(
                JSONObject(
                    object.members
                        .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
                        .map { (name: $0.name, value: $0.value.withMembersByName) }))
        default: self
        }
    }

    /// Returns whether another value has the same bytes.
    ///
    /// Swift strings are equal if they spell a letter in two ways; secrets and names must not be.
    package func isSpelled(as other: JSONValue) -> Bool {
        switch (self, other) {
        case (.string(let one), .string(let other)):
            one.utf8.elementsEqual(other.utf8)
        case (.array(let one), .array(let other)):
            one.elementsEqual(other) { $0.isSpelled(as: $1) }
        case (.object(let one), .object(let other)):
            one.members.elementsEqual(other.members) {
                $0.name.utf8.elementsEqual($1.name.utf8) && $0.value.isSpelled(as: $1.value)
            }
        default: self == other
        }
    }

    /// Returns whether another array or object is a copy that shares its elements in memory, which
    /// takes no time in their number.
    ///
    /// If not, it may still have the same bytes.
    package func isCopy(of other: JSONValue) -> Bool {
        switch (self, other) {
        case (.array(let one), .array(let other)): Self.haveOneStorage(one, other)
        case (.object(let one), .object(let other)):
            Self.haveOneStorage(one.members, other.members)
        default: false
        }
    }

    private static func haveOneStorage<Element>(_ one: [Element], _ other: [Element]) -> Bool {
        guard one.count == other.count else { return false }
        let isOne = unsafe one.withContiguousStorageIfAvailable { one in
            unsafe other.withContiguousStorageIfAvailable { other in
                unsafe one.baseAddress == other.baseAddress
            }
        }
        return isOne == true
    }
}
