import PredicateLanguage
import RelayModel
import Testing

@Suite(
    "Firebase's published queries", .enabled(if: DialectCorpora.folder != nil, DialectCorpora.hint))
struct FirebaseCorpusTests {
    @Test func `every window holds the published children in order`() throws {
        for test in try DialectCorpora.cases("firebase_order_cases.jsonl")
        where test.text("kind") == "window" {
            let query = try Self.query(calls: test)
            let window = query.window(of: try Self.children(test.object["data"]))
            if case .array(let names)? = test.object["expect_order"] {
                #expect(
                    window.map { JSONValue.string($0.key) } == names, "\(test.testDescription)")
            } else {
                let expected = try Self.children(test.object["expect"])
                #expect(
                    Dictionary(uniqueKeysWithValues: window.map { ($0.key, $0.value) })
                        == Dictionary(uniqueKeysWithValues: expected.map { ($0.key, $0.value) }),
                    "\(test.testDescription)")
            }
        }
    }

    @Test func `the steps of limited windows add and remove the published children`() throws {
        for test in try DialectCorpora.cases("firebase_order_cases.jsonl")
        where test.text("kind") == "steps" {
            try checkSteps(test)
        }
    }

    private func checkSteps(_ test: DialectCorpora.Case) throws {
        let query = try Self.query(calls: test)
        guard case .array(let steps)? = test.object["steps"] else { return }
        var data = JSONObject()
        var before: [FirebaseChild] = []
        for case .object(let step) in steps {
            guard step["op"] == "set", case .string(let path)? = step["path"],
                case .object(let expected)? = step["expect"], !path.contains("/")
            else { return }
            let value = step["data"] ?? .null
            if path.isEmpty {
                data = JSONObject()
                if case .object(let object) = value { data = object }
            } else {
                data[path] = value == .null ? nil : value
            }
            let after = query.window(of: try Self.children(.object(data)))
            try Self.check(expected["child_added"], Self.names(after, without: before), test)
            try Self.check(expected["child_removed"], Self.names(before, without: after), test)
            before = after
        }
    }

    private static func names(
        _ window: [FirebaseChild], without other: [FirebaseChild]
    ) -> [String] {
        window.map(\.key).filter { key in !other.contains { $0.key == key } }
    }

    private static func check(
        _ expected: JSONValue?, _ names: [String], _ test: DialectCorpora.Case
    ) throws {
        guard case .array(let elements)? = expected else { return }
        let expected = elements.map { element -> JSONValue in
            if case .array(let pair) = element { pair[0] } else { element }
        }
        #expect(
            Set(expected) == Set(names.map(JSONValue.string)), "\(test.testDescription)")
    }

    @Test func `queries are refused as published`() throws {
        for test in try DialectCorpora.cases("firebase_order_cases.jsonl") {
            switch test.text("kind") {
            case "invalid_query":
                #expect(throws: (any Error).self, "\(test.testDescription)") {
                    try Self.query(calls: test)
                }
            case "valid_query": _ = try Self.query(calls: test)
            default: break
            }
        }
    }

    // MARK: Reading the cases

    private static func children(_ json: JSONValue?) throws -> [FirebaseChild] {
        guard case .object(let object)? = json else { return [] }
        return try object.members.map { name, json in
            guard case .object(let members) = json else {
                return FirebaseChild(key: name, value: try FieldValue(notation: json))
            }
            let priority = try FieldValue(notation: members[".priority"] ?? .null)
            if let value = members[".value"] {
                return FirebaseChild(
                    key: name, value: try FieldValue(notation: value), priority: priority)
            }
            var fields = members
            fields[".priority"] = nil
            return FirebaseChild(
                key: name, value: try FieldValue(notation: .object(fields)), priority: priority)
        }
    }

    private static func query(calls test: DialectCorpora.Case) throws -> FirebaseQuery {
        var query = FirebaseQuery()
        guard case .array(let calls)? = test.object["calls"] else { return query }
        for case .array(let call) in calls {
            guard case .string(let name) = call[0], case .array(let json) = call[1] else {
                continue
            }
            query = try apply(name, try json.map { try FieldValue(notation: $0) }, to: query)
        }
        return query
    }

    private static func apply(
        _ name: String, _ arguments: [FieldValue], to query: FirebaseQuery
    ) throws -> FirebaseQuery {
        let value = arguments.first ?? .null
        var key: String?
        if arguments.count > 1, case .string(let text) = arguments[1] { key = text }
        switch name {
        case "orderByKey": return try query.ordered(by: .key)
        case "orderByValue": return try query.ordered(by: .value)
        case "orderByPriority": return try query.ordered(by: .priority)
        case "orderByChild":
            guard case .string(let path) = value else { throw Misfit() }
            return try query.ordered(byChild: path)
        case "startAt": return try query.starting(at: value, key: key)
        case "startAfter": return try query.starting(at: value, key: key, isIncluded: false)
        case "endAt": return try query.ending(at: value, key: key)
        case "endBefore": return try query.ending(at: value, key: key, isIncluded: false)
        case "equalTo": return try query.equal(to: value, key: key)
        case "limitToFirst", "limitToLast":
            guard case .integer(let count) = value else { throw Misfit() }
            return try query.limited(
                to: name == "limitToFirst" ? .first(Int(count)) : .last(Int(count)))
        default: throw Misfit()
        }
    }

    /// An error: the case cannot be expressed in the typed interface of ``FirebaseQuery``.
    private struct Misfit: Error {}
}
