import RelayModel

extension AdministrationCall {
    /// Returns the paths of the OpenAPI document, with the operations of each.
    static func paths(of calls: [AdministrationCall]) -> JSONObject {
        var paths = JSONObject()
        for call in calls {
            var operations = JSONObject()
            if case .object(let known)? = paths[call.path] { operations = known }
            operations[call.method.lowercased()] = .object(call.operation)
            paths[call.path] = .object(operations)
        }
        return paths
    }

    /// The call as an OpenAPI operation object.
    private var operation: JSONObject {
        var operation: JSONObject = [
            "operationId": .string(operationID), "summary": .string(summary),
            "security": [["adminToken": []]],
        ]
        let parameters = pathParameters + query.map(Self.parameter)
        if !parameters.isEmpty { operation["parameters"] = .array(parameters) }
        if let body {
            var media: JSONObject = ["schema": body.form.schema]
            media["example"] = body.example
            operation["requestBody"] = [
                "required": true, "content": ["application/json": .object(media)],
            ]
        }
        var responses = JSONObject()
        for answer in answers {
            responses[String(answer.status)] = [
                "description": .string(answer.description),
                "content": ["application/json": ["schema": answer.form.schema]],
            ]
        }
        responses["default"] = ["$ref": "#/components/responses/Error"]
        operation["responses"] = .object(responses)
        return operation
    }

    /// The operation ID: the method, followed by the words of the path.
    private var operationID: String {
        let words = path.split { !$0.isLetter }.map { $0.prefix(1).uppercased() + $0.dropFirst() }
        return method.lowercased() + words.joined()
    }

    private var pathParameters: [JSONValue] {
        path.split(separator: "/").filter { $0.hasPrefix("{") }.map { part in
            let name = String(part.dropFirst().dropLast())
            let form: JSONForm
            switch name {
            case "container", "environment", "database":
                return ["$ref": .string("#/components/parameters/\(name)")]
            case "number": form = .count
            case "delivery": form = .uuid
            default: form = .name
            }
            return [
                "name": .string(name), "in": "path", "required": true, "schema": form.schema,
            ]
        }
    }

    private static func parameter(_ member: JSONForm.Member) -> JSONValue {
        [
            "name": .string(member.name), "in": "query", "required": .bool(member.isAlways),
            "schema": member.form.schema,
        ]
    }
}
