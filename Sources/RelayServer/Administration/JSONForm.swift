import RelayModel

/// The form of a JSON value in administrative calls, as a JSON Schema.
package struct JSONForm: Sendable, Hashable {
    /// The JSON Schema.
    let schema: JSONValue

    init(_ schema: JSONValue) {
        self.schema = schema
    }

    static let text = JSONForm(["type": "string"])
    /// A name in a path or parameter.
    static let name = JSONForm(["type": "string", "minLength": 1, "maxLength": 255])
    static let uuid = JSONForm(["type": "string", "format": "uuid"])
    static let integer = JSONForm(["type": "integer"])
    static let flag = JSONForm(["type": "boolean"])
    /// An object whose members are not described.
    static let object = JSONForm(["type": "object"])
    /// The constant `true`.
    static let yes = JSONForm(["const": true])
    /// A non-negative integer.
    static let count = number(from: 0)

    static func number(from least: Int64, to most: Int64? = nil) -> JSONForm {
        var schema: JSONObject = ["type": "integer", "minimum": .integer(least)]
        schema["maximum"] = most.map { .integer($0) }
        return JSONForm(.object(schema))
    }

    static func words(_ words: [String]) -> JSONForm {
        JSONForm(["type": "string", "enum": .array(words.map { .string($0) })])
    }

    static func words<Word: RawRepresentable<String> & CaseIterable>(
        of type: Word.Type
    ) -> JSONForm {
        words(Word.allCases.map(\.rawValue))
    }

    static func list(of form: JSONForm) -> JSONForm {
        JSONForm(["type": "array", "items": form.schema])
    }

    /// Returns a form that also allows `null`.
    func orNull() -> JSONForm {
        guard case .object(var object) = schema, let type = object["type"] else { return self }
        object["type"] = [type, "null"]
        return JSONForm(.object(object))
    }

    /// Returns a reference to a component of the OpenAPI document.
    static func component(_ name: String) -> JSONForm {
        JSONForm(["$ref": .string("#/components/schemas/\(name)")])
    }

    static func members(_ members: [Member]) -> JSONForm {
        var schema: JSONObject = [
            "type": "object",
            "properties": .object(
                JSONObject(members.map { ($0.name, $0.form.schema) })),
        ]
        let required = members.filter(\.isAlways).map { JSONValue.string($0.name) }
        if !required.isEmpty { schema["required"] = .array(required) }
        return JSONForm(.object(schema))
    }

    /// Returns the form of an object that has `members` besides those of this one.
    func and(_ members: [Member]) -> JSONForm {
        JSONForm(["allOf": [schema, Self.members(members).schema]])
    }

    /// A member of an object, or a parameter of a call.
    package struct Member: Sendable, Hashable {
        /// The name.
        package let name: String
        let form: JSONForm
        /// Whether the member is always present.
        let isAlways: Bool

        static func always(_ name: String, _ form: JSONForm) -> Member {
            Member(name: name, form: form, isAlways: true)
        }

        static func maybe(_ name: String, _ form: JSONForm) -> Member {
            Member(name: name, form: form, isAlways: false)
        }
    }
}

extension JSONForm.Member {
    /// The maximum number of rows; this and the following are parameters of several lists.
    static let limit = maybe("limit", .number(from: 1, to: 1000))
    static let after = maybe("after", .count)
    static let user = maybe("user", .name)
    /// The place before which a list begins; the answer's own `before` continues the list.
    static let before = maybe("before", .text)
    static let source = maybe("source", .name)
    static let recordType = maybe("recordType", .name)
    static let record = maybe("record", .text)
    static let subscription = maybe("subscription", .name)
    static let device = maybe("device", .name)
    static let reason = maybe("reason", .text)
    /// The shard whose store answers.
    static let shard = maybe("shard", .name)
}
