public import RelayModel

extension RecordPredicate {
    /// Creates a predicate from a subscription's condition in Minapp's wire form:
    /// `{"price": {"$lt": 100}}`, joined by `$and` and `$or`.
    ///
    /// A subscription may compare texts (`$eq`, `$ne`), numbers and dates (`$eq`, `$ne`, `$lt`,
    /// `$lte`, `$gt`, `$gte`) and booleans (`$eq`, `$ne`). A date is an ISO 8601 text with an
    /// offset. Such a text is always a date, unless the schema says otherwise. Several fields in
    /// one object, or several operators on one field, must all hold. `{}` means every record.
    ///
    /// - Throws: ``PredicateError`` whose reason begins with `invalid options`, Minapp's message.
    public init(where json: JSONValue, schema: RecordSchema? = nil) throws(PredicateError) {
        self.init(try MinappReader(schema: schema).node(json, path: "", depth: 0))
    }
}

/// A reader for Minapp's conditions.
struct MinappReader {
    typealias Node = RecordPredicate.Node
    typealias Comparator = RecordPredicate.Comparator

    let schema: RecordSchema?

    func node(_ json: JSONValue, path: String, depth: Int) throws(PredicateError) -> Node {
        guard depth < Limits.maximumPredicateDepth else {
            throw invalid("nested deeper than \(Limits.maximumPredicateDepth) levels", path)
        }
        guard case .object(let object) = json else {
            throw invalid("a condition must be an object, found \(json.kind)", path)
        }
        var nodes: [Node] = []
        for member in object.members {
            let place = path.isEmpty ? member.name : "\(path).\(member.name)"
            switch member.name {
            case "$and":
                nodes.append(.and(try self.nodes(member.value, place, depth + 1)))
            case "$or":
                nodes.append(.or(try self.nodes(member.value, place, depth + 1)))
            default: nodes += try comparisons(of: member.name, member.value, place)
            }
        }
        return .and(nodes)
    }

    private func nodes(
        _ json: JSONValue, _ path: String, _ depth: Int
    ) throws(PredicateError) -> [Node] {
        guard case .array(let elements) = json, !elements.isEmpty else {
            throw invalid("$and and $or take a list of conditions", path)
        }
        var nodes: [Node] = []
        for (index, element) in elements.enumerated() {
            nodes.append(try node(element, path: "\(path)[\(index)]", depth: depth))
        }
        return nodes
    }

    private func comparisons(
        of field: String, _ json: JSONValue, _ path: String
    ) throws(PredicateError) -> [Node] {
        guard !field.isEmpty, !field.hasPrefix("$") else {
            throw invalid("\(field) is neither a field nor $and or $or", path)
        }
        guard case .object(let operators) = json, !operators.members.isEmpty else {
            throw invalid(
                "a field needs an object of operators, found \(json.kind)", path,
                hint: #"{"\#(field)": {"$eq": …}}"#)
        }
        let type = try fieldType(field, path)
        var nodes: [Node] = []
        for member in operators.members {
            let place = "\(path).\(member.name)"
            guard let comparator = Self.comparators[member.name] else {
                throw invalid(
                    "\(member.name) cannot be subscribed to; allowed are "
                        + "$eq, $ne, $lt, $lte, $gt, $gte", place)
            }
            let value = try value(member.value, for: type, place)
            try check(member.name, comparator, value, place)
            var comparison = RecordPredicate.Comparison(
                .field(field), comparator, .constant(value))
            comparison.rules = .minapp
            nodes.append(.comparison(comparison))
        }
        return nodes
    }

    private static let comparators: [String: Comparator] = [
        "$eq": .equal, "$ne": .notEqual, "$lt": .less, "$lte": .lessOrEqual, "$gt": .greater,
        "$gte": .greaterOrEqual,
    ]

    // MARK: Kinds

    private func fieldType(
        _ field: String, _ path: String
    ) throws(PredicateError) -> RecordSchema.FieldType? {
        guard let schema else { return nil }
        guard let known = schema.fields[field] else {
            throw invalid("there is no field \(field)", path)
        }
        // Any element of a list may satisfy a comparison.
        if case .list(let element) = known.type { return element }
        return known.type
    }

    /// Returns the value as the field's type, or as the type that the JSON shows if the field's
    /// type is not known.
    private func value(
        _ json: JSONValue, for type: RecordSchema.FieldType?, _ path: String
    ) throws(PredicateError) -> FieldValue {
        switch (json, type) {
        case (.string(let text), nil), (.string(let text), .mixed):
            return InternetDate.read(text).map(FieldValue.timestamp) ?? .string(text)
        case (.string(let text), .string), (.string(let text), .reference),
            (.string(let text), .uuid), (.string(let text), .objectID):
            return .string(text)
        case (.string(let text), .timestamp):
            if let date = InternetDate.read(text) { return .timestamp(date) }
            throw invalid("a date must be ISO 8601 text with an offset", path)
        case (.integer(let number), nil), (.integer(let number), .mixed),
            (.integer(let number), .integer), (.integer(let number), .double):
            return .integer(number)
        case (.number(let number), nil), (.number(let number), .mixed),
            (.number(let number), .integer), (.number(let number), .double):
            return .double(number)
        case (.bool(let flag), nil), (.bool(let flag), .mixed), (.bool(let flag), .boolean):
            return .bool(flag)
        default:
            throw invalid("\(json.kind) does not fit \(type?.word ?? "a compare condition")", path)
        }
    }

    private func check(
        _ name: String, _ comparator: Comparator, _ value: FieldValue, _ path: String
    ) throws(PredicateError) {
        if comparator == .equal || comparator == .notEqual { return }
        switch value {
        case .integer, .double, .timestamp: return
        default:
            throw invalid(
                "\(value.kind) can be compared only by $eq and $ne, found \(name)", path,
                hint: Self.hint(forOrderOf: value))
        }
    }

    /// Returns a hint on what a text was meant as, if it is compared by order.
    private static func hint(forOrderOf value: FieldValue) -> String? {
        guard case .string(let text) = value else { return nil }
        if Double(text) != nil { return "write a number without quotes" }
        let isDate =
            text.utf8.count >= 10 && Int(text.prefix(4)) != nil
            && text.utf8.prefix(5).last == UInt8(ascii: "-")
        return isDate ? "write a date as ISO 8601 text with an offset: 2026-01-31T12:00:00Z" : nil
    }

    private func invalid(
        _ reason: String, _ path: String, hint: String? = nil
    ) -> PredicateError {
        PredicateError(
            .check, "invalid options: \(reason)",
            expected: "{field: {$eq, $ne, $lt, $lte, $gt or $gte: value}}, $and or $or",
            hint: hint, path: path)
    }
}
