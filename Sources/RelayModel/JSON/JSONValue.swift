/// A JSON value with exact integers and the members of an object in the order they were written.
///
/// Foundation's decoders do not keep what a relay must: whether a number was written as an integer,
/// the order of members, whether a name occurs twice, and the place of an error in the text.
public enum JSONValue: Sendable, Hashable {
    /// The literal `null`.
    case null
    /// A truth value.
    case bool(Bool)
    /// A number written without fraction and exponent that fits 64 bits.
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

/// The members of a JSON object, in the order they were written.
///
/// Look-ups scan: the objects of this relay's contract have a few dozen members at most, where
/// a scan beats hashing.
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

    /// The value of the member `name`; setting `nil` removes it, setting a new name appends it.
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
    /// Two objects are equal when they have the same members, in whatever order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.members.count == right.members.count else { return false }
        guard left.members.count > few else {
            return left.members.allSatisfy { right[$0.name] == $0.value }
        }
        let known = right.byName
        return left.members.allSatisfy { known[$0.name] == $0.value }
    }

    /// Of so few members the one that is looked for is found sooner than where it stands.
    private static let few = 16

    /// The members by name, for whoever looks for many of them: each look at ``subscript(_:)`` goes
    /// through all.
    private var byName: [String: JSONValue] {
        Dictionary(members.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// This object with the members of `other` in the place of its own; what is null there is
    /// removed.
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

    /// Takes over what `other` says of these names, and removes what it does not say of them.
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
    /// A text, as it stands in the source.
    public init(stringLiteral value: String) {
        self = .string(value)
    }

    /// An integer, as it stands in the source.
    public init(integerLiteral value: Int64) {
        self = .integer(value)
    }

    /// A truth value, as it stands in the source.
    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }

    /// A list of the elements, in their order.
    public init(arrayLiteral elements: JSONValue...) {
        self = .array(elements)
    }

    /// Creates an object; members keep the literal's order.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements.map { (name: $0.0, value: $0.1) }))
    }
}

extension JSONValue {
    /// The same with the members of every object in the order of their names, byte by byte.
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

    /// Whether another value is written in the same bytes: texts are equal where a letter is
    /// spelled in two ways, and secrets and names are not.
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
}
