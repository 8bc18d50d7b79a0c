import PredicateLanguage
import RelayModel
import Testing

@Suite(
    "Minapp's published conditions", .enabled(if: DialectCorpora.folder != nil, DialectCorpora.hint)
)
struct MinappCorpusTests {
    @Test func `builders write the published wire form`() throws {
        for test in try DialectCorpora.cases("minapp_where_cases.jsonl")
        where test.text("kind") == "wire" {
            guard case .array(let arguments)? = test.object["args"] else { continue }
            let condition = try Self.condition(test.text("call"), arguments)
            #expect(
                Self.plain(condition.json) == Self.plain(test.object["expect"] ?? .null),
                "\(test.testDescription)")
        }
    }

    @Test func `subscriptions are accepted and refused as published`() throws {
        for test in try DialectCorpora.cases("minapp_where_cases.jsonl")
        where test.text("kind") == "subscribable" {
            let schema = Self.schema(test.text("type"))
            do {
                _ = try RecordPredicate(where: test.object["where"] ?? .null, schema: schema)
                #expect(test.object["expect"] == true, "\(test.testDescription)")
                _ = try RecordPredicate(where: test.object["where"] ?? .null)
            } catch {
                #expect(test.object["expect"] == false, "\(test.testDescription)")
                #expect(error.reason.hasPrefix("invalid options"))
            }
        }
    }

    private static func schema(_ type: String) -> RecordSchema? {
        let types: [String: RecordSchema.FieldType] = [
            "String": .string, "Int": .integer, "Double": .double, "Bool": .boolean,
            "Date": .timestamp,
        ]
        return types[type].map { RecordSchema(["f": RecordSchema.Field($0)]) }
    }

    /// Returns the JSON with all numbers as doubles, because `0` and `0.0` are one number in JSON.
    private static func plain(_ json: JSONValue) -> JSONValue {
        switch json {
        case .integer(let number): .number(Double(number))
        case .array(let elements): .array(elements.map(plain))
        case .object(let object):
            .object(JSONObject(object.members.map { ($0.name, plain($0.value)) }))
        default: json
        }
    }

    private static func condition(
        _ call: String, _ arguments: [JSONValue]
    ) throws -> MinappCondition {
        guard case .string(let field) = arguments[0] else { throw Misfit() }
        switch (call, arguments.dropFirst().map { $0 }) {
        case ("compare", let rest):
            guard case .string(let name) = rest[0], let relation = relations[name] else {
                throw Misfit()
            }
            var value = rest[1]
            if case .object(let record) = value { value = record["$record"] ?? value }
            return .compare(field, relation, value)
        case ("range", let rest): return .range(field, rest[0], rest[1])
        case ("contains", let rest): return .contains(field, try text(rest[0]))
        case ("icontains", let rest): return .icontains(field, try text(rest[0]))
        case ("hasKey", let rest): return try .hasKey(field, try text(rest[0]))
        case ("inList", let rest):
            guard case .array(let values) = rest[0] else { throw Misfit() }
            return .inList(field, values)
        case ("within", let rest):
            guard case .array(let points) = rest[0] else { throw Misfit() }
            return .within(field, polygon: try points.map(point))
        case ("include", let rest): return .include(field, point: try point(rest[0]))
        default: throw Misfit()
        }
    }

    private static let relations: [String: MinappCondition.Relation] = [
        "equalTo": .equalTo, "notEqualTo": .notEqualTo, "lessThan": .lessThan,
        "lessThanOrEqualTo": .lessThanOrEqualTo, "greaterThan": .greaterThan,
        "greaterThanOrEqualTo": .greaterThanOrEqualTo,
    ]

    private static func text(_ json: JSONValue) throws -> String {
        guard case .string(let text) = json else { throw Misfit() }
        return text
    }

    private static func point(_ json: JSONValue) throws -> [Double] {
        guard case .array(let numbers) = json else { throw Misfit() }
        return numbers.compactMap(\.double)
    }

    private struct Misfit: Error {}
}
