import RelayModel
import RelayTestKit

/// Generates values that fit a schema, and corrupts them.
struct APIGenerator {
    let document: APIDocument
    var random: SeededGenerator

    /// Strings that have broken programs before.
    private static let texts = [
        "Artwork", "title", "year", "mona", "s1", "_defaultZone", "notes", "", " ", "0", "-1",
        "null", "ü", "😀", "a\u{0}b", "a\u{7F}", "../..", "%00", "' OR 1=1 --", "\"", "\\",
        "year > 1", "title BEGINSWITH 'M' AND year IN {1, 2}", "ANY tags == 'x'", "((((", "$ref",
        "AAAA", "9223372036854775808", String(repeating: "x", count: 300),
    ]

    private static let integers: [Int64] = [
        0, 1, -1, 2, 5, 10, 200, 201, 1000, .max, .min, 1_700_000_000_000,
    ]

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &random)]
    }

    mutating func text() -> String { pick(Self.texts) }

    /// Returns a value that fits `schema`; `depth` limits the nesting where the schema does not.
    mutating func value(_ schema: JSONValue, depth: Int = 0) -> JSONValue {
        guard case .object(let rules) = document.resolved(schema) else { return .null }
        if let constant = rules["const"] { return constant }
        if case .array(let words)? = rules["enum"] { return pick(words) }
        for word in ["oneOf", "anyOf"] {
            if case .array(let choices)? = rules[word] {
                return value(pick(choices), depth: depth + 1)
            }
        }
        var type = rules["type"]
        if case .array(let types)? = type { type = pick(types) }
        switch type {
        case "object"?: return .object(object(rules, depth))
        case "array"?:
            let bound = depth > 6 ? 0 : 3
            let count = Int.random(
                in: (rules["minItems"] == nil ? 0 : 1)...max(1, bound), using: &random)
            guard let items = rules["items"] else { return [] }
            return .array((0..<count).map { _ in value(items, depth: depth + 1) })
        case "string"?:
            let text = text()
            return .string(text.isEmpty && rules["minLength"] != nil ? "x" : text)
        case "boolean"?: return .bool(random.chance(50))
        case "integer"?:
            if case .integer(let least)? = rules["minimum"] {
                return .integer(least + Int64.random(in: 0...20, using: &random))
            }
            return .integer(pick(Self.integers))
        case "number"?: return .number(Double.random(in: 0...1000, using: &random))
        case "null"?: return .null
        default: return anything(depth)
        }
    }

    private mutating func object(_ rules: JSONObject, _ depth: Int) -> JSONObject {
        var object = JSONObject()
        var required: Set<String> = []
        if case .array(let names)? = rules["required"] {
            for case .string(let name) in names { required.insert(name) }
        }
        if case .object(let properties)? = rules["properties"] {
            for member in properties.members
            where required.contains(member.name) || depth < 7 && random.chance(45) {
                object[member.name] = value(member.value, depth: depth + 1)
            }
        }
        if let more = rules["additionalProperties"], depth < 7 {
            for name in [pick(["title", "year", "tags"]), text()] where random.chance(70) {
                object[name] = value(more, depth: depth + 1)
            }
        }
        return object
    }

    /// Returns any JSON value.
    mutating func anything(_ depth: Int) -> JSONValue {
        switch Int.random(in: 0..<(depth > 6 ? 5 : 7), using: &random) {
        case 0: return .null
        case 1: return .bool(random.chance(50))
        case 2: return .integer(pick(Self.integers))
        case 3: return .number(pick([0.5, -1e300, 1e-300, 3.0]))
        case 4: return .string(text())
        case 5: return .array([anything(depth + 1)])
        default: return ["value": anything(depth + 1), "recordName": anything(depth + 1)]
        }
    }

    /// Returns the value with one part of it replaced or removed.
    mutating func spoiled(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(var object) where !object.members.isEmpty && random.chance(80):
            let index = Int.random(in: 0..<object.members.count, using: &random)
            if random.chance(25) {
                object.members.remove(at: index)
            } else {
                object.members[index].value = spoiled(object.members[index].value)
            }
            return .object(object)
        case .array(var elements) where !elements.isEmpty && random.chance(80):
            let index = Int.random(in: 0..<elements.count, using: &random)
            elements[index] = spoiled(elements[index])
            return .array(elements)
        default: return anything(3)
        }
    }

    /// Returns a body that is hardly JSON.
    mutating func garbage() -> String {
        pick([
            "", "{", "null", "[]", "{}", "\u{FEFF}{}", "{\"a\":1,\"a\":2}", "\"\\ud800\"",
            String(repeating: "[", count: 5000), "{\"operations\":1e999}", "%%%",
        ])
    }
}
