import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The OpenAPI document, read as operations and schemas with references.
struct APIDocument: Sendable {
    /// One call of the document.
    struct Call: Sendable, CustomTestStringConvertible {
        var method: String
        var path: String
        var description: JSONObject

        var name: String { "\(method) \(path)" }
        var testDescription: String { name }

        /// The schema and the example of the JSON body, if the call has one.
        var body: (schema: JSONValue, example: JSONValue?)? {
            let media = JSONValue.object(description)
                .value(at: ["requestBody", "content", "application/json"])
            guard let schema = media?.value(at: ["schema"]) else { return nil }
            return (schema, media?.value(at: ["example"]))
        }

        /// Whether the relay holds the call before it answers.
        var isHeld: Bool {
            path.hasPrefix("/courier/") || path.hasSuffix("/poll") || path.hasSuffix("/events")
        }

        /// Whether the response ends by itself.
        ///
        /// `LiveScenarioTests` covers streams, which do not end.
        var isAnswered: Bool { !path.hasSuffix("/stream") }

        /// Whether the call belongs to the operator.
        var isAdministrative: Bool { path.hasPrefix("/admin/") }
    }

    let json: JSONValue

    init(_ object: JSONObject) {
        json = .object(object)
    }

    var calls: [Call] {
        guard case .object(let paths)? = json.value(at: ["paths"]) else { return [] }
        return paths.members.flatMap { path, operations -> [Call] in
            guard case .object(let operations) = operations else { return [] }
            return operations.members.compactMap { method, operation in
                guard case .object(let description) = operation else { return nil }
                return Call(method: method.uppercased(), path: path, description: description)
            }
        }
    }

    /// Returns the target of a reference, or any other value unchanged.
    func resolved(_ value: JSONValue) -> JSONValue {
        guard case .string(let text)? = value.value(at: ["$ref"]) else { return value }
        let target = json.value(at: text.split(separator: "/").dropFirst().map(String.init))
        return target ?? .null
    }

    /// Returns the parameters of a call at `in: place`, with their schemas.
    func parameters(of call: Call, in place: String) -> [(name: String, schema: JSONValue)] {
        guard case .array(let all)? = call.description["parameters"] else { return [] }
        return all.map(resolved).compactMap { parameter in
            guard parameter.value(at: ["in"]) == .string(place),
                case .string(let name)? = parameter.value(at: ["name"]),
                let schema = parameter.value(at: ["schema"])
            else { return nil }
            return (name, schema)
        }
    }

    /// Returns the response that a call documents for a status, or its default response.
    func answer(of call: Call, status: Int) -> JSONValue? {
        guard case .object(let answers)? = call.description["responses"] else { return nil }
        return (answers[String(status)] ?? answers["default"]).map(resolved)
    }

    /// Returns the schema of the 200 response of the call whose path ends with `end`.
    func answerSchema(ofPathEnding end: String) -> JSONValue? {
        guard let call = calls.first(where: { $0.path.hasSuffix(end) }) else { return nil }
        return answer(of: call, status: 200)?
            .value(at: ["content", "application/json", "schema"])
    }

    /// Returns whether a call documents a status explicitly.
    func documents(_ status: Int, of call: Call) -> Bool {
        JSONValue.object(call.description).value(at: ["responses", String(status)]) != nil
    }
}

/// Validates values against the part of JSON Schema that the document uses.
struct SchemaCheck {
    let document: APIDocument

    /// Returns the violations, each with its path; empty if the value is valid.
    func problems(_ value: JSONValue, _ schema: JSONValue, at path: String = "$") -> [String] {
        guard case .object(let rules) = document.resolved(schema) else {
            return ["\(path): the schema is no object"]
        }
        var problems: [String] = []
        if let constant = rules["const"], constant != value { problems.append("\(path): const") }
        if case .array(let words)? = rules["enum"], !words.contains(value) {
            problems.append("\(path): \(value.text.prefix(60)) is not of the enumeration")
        }
        if let type = rules["type"], !fits(value, type) {
            return problems + ["\(path): \(value.kind) is not \(type.text)"]
        }
        for (word, isAny) in [("anyOf", true), ("oneOf", true), ("allOf", false)] {
            guard case .array(let choices)? = rules[word] else { continue }
            let found = choices.map { self.problems(value, $0, at: path) }
            if isAny {
                if !found.contains([]) {
                    problems.append("\(path): none of \(word) fits: \(found)")
                }
            } else {
                problems += found.flatMap { $0 }
            }
        }
        switch value {
        case .object(let object): problems += self.problems(of: object, rules, path)
        case .array(let elements):
            guard let items = rules["items"] else { break }
            for (index, element) in elements.enumerated() {
                problems += self.problems(element, items, at: "\(path)[\(index)]")
            }
        default: break
        }
        return problems
    }

    private func problems(
        of object: JSONObject, _ rules: JSONObject, _ path: String
    ) -> [String] {
        var problems: [String] = []
        if case .array(let names)? = rules["required"] {
            for case .string(let name) in names where object[name] == nil {
                problems.append("\(path): \(name) is absent")
            }
        }
        let known = rules["properties"].flatMap { value -> JSONObject? in
            if case .object(let object) = value { object } else { nil }
        }
        for member in object.members {
            if let schema = known?[member.name] ?? rules["additionalProperties"] {
                problems += self.problems(member.value, schema, at: "\(path).\(member.name)")
            }
        }
        return problems
    }

    private func fits(_ value: JSONValue, _ type: JSONValue) -> Bool {
        if case .array(let types) = type { return types.contains { fits(value, $0) } }
        switch (type, value) {
        case ("object", .object), ("array", .array), ("string", .string), ("boolean", .bool),
            ("integer", .integer), ("number", .integer), ("number", .number), ("null", .null):
            return true
        default: return false
        }
    }
}
