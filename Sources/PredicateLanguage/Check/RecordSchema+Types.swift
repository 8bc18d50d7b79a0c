import RelayModel

extension RecordSchema {
    /// The types of the system fields, which every record has, by the names of CloudKit's metadata.
    static let systemFields: [String: FieldType] = Dictionary(
        uniqueKeysWithValues: SystemField.allCases.flatMap { field in
            field.names.map { ($0, FieldType(field.element, members: nil)) }
        })

    /// Returns the type of an expression, or `nil` if it is not known.
    ///
    /// - Throws: ``PredicateError`` if the expression uses a field that is unknown or not
    ///   queryable, or if an operation is not defined for the type of an operand.
    func type(of expression: Expression) throws(PredicateError) -> FieldType? {
        switch expression {
        case .constant(let value): return FieldType(of: value)
        case .path(let path): return try type(of: path)
        case .list(let elements):
            for element in elements { _ = try type(of: element) }
            return .list(.mixed)
        case .arithmetic(let symbol, let left, let right):
            return try arithmeticType(symbol, left, right)
        case .negative(let inner), .complement(let inner):
            try checkNumber(inner)
            return .double
        case .call(let function, let arguments):
            var types: [FieldType?] = []
            for argument in arguments {
                let type = try type(of: argument)
                try checkArgument(argument, type, of: function, isOnly: arguments.count == 1)
                types.append(type)
            }
            return Self.type(of: function, types)
        case .cast(let inner, let target):
            if let type = try type(of: inner), inner.literal == nil {
                try checkCast(inner, type, to: target)
            }
            return Self.type(of: target)
        case .member(let base, let path):
            let kind = try type(of: base)
            // The members of a calculated value are of unknown kinds.
            guard case .variable = base, let kind else { return nil }
            return try walk(path.components[...], from: kind, path.span)
        case .subquery(let list, _, _):
            if let type = try type(of: list) {
                try checkCollection(type, "SUBQUERY", span(of: list))
            }
            return .list(.mixed)
        case .conditional(_, let first, let second):
            let firstType = try type(of: first)
            return firstType == (try type(of: second)) ? firstType : nil
        case .assignment(_, let inner): return try type(of: inner)
        case .variable(let name): return elements[name]
        case .anyKey: return nil
        }
    }

    private func arithmeticType(
        _ symbol: RecordPredicate.ArithmeticOperator, _ left: Expression, _ right: Expression
    ) throws(PredicateError) -> FieldType? {
        switch symbol {
        case .union, .intersect, .minus:
            for side in [left, right] {
                guard let type = try type(of: side), type.isScalar else { continue }
                throw mismatch(
                    "\(symbol.rawValue) combines collections", span(of: side), found: type.word,
                    expected: "a list")
            }
            return .list(.mixed)
        default:
            try checkNumber(left)
            try checkNumber(right)
            return .double
        }
    }

    private func checkNumber(_ operand: Expression) throws(PredicateError) {
        guard let type = try type(of: operand), !type.agrees(with: .double) else { return }
        throw mismatch(
            "arithmetic needs numbers", span(of: operand), found: type.word, expected: "a number",
            hint: type == .string ? Self.hintForHyphen : nil)
    }

    private static let hintForHyphen =
        "write a text in quotes, also one with a hyphen: \"a-1\""

    private static func type(
        of function: RecordPredicate.Function, _ arguments: [FieldType?]
    ) -> FieldType? {
        switch function {
        case .now: .timestamp
        case .uppercase, .lowercase: .string
        case .mode, .tokenize: .list(.mixed)
        case .count, .length, .sum, .average, .median, .standardDeviation, .modulus,
            .squareRoot, .logarithm, .naturalLogarithm, .exponential, .floor, .ceiling,
            .absolute, .truncate, .distance:
            .double
        case .minimum, .maximum: extreme(of: arguments)
        case .noIndex, .geoBox, .geoCircle, .geoPolygon: nil
        }
    }

    private static func type(of cast: RecordPredicate.CastType) -> FieldType {
        switch cast {
        case .date: .timestamp
        case .number: .double
        case .string: .string
        case .data: .bytes
        case .uuid: .uuid
        case .set: .list(.mixed)
        case .dictionary: .map(nil)
        case .location: .location
        case .reference: .reference
        case .objectID: .objectID
        }
    }

    // MARK: Paths

    private func type(of path: RecordPredicate.RecordPath) throws(PredicateError) -> FieldType? {
        guard case .member(let name)? = path.components.first else { return nil }
        if isOpen, !isKnown(path) { return nil }
        try checkSystemPath(path)
        guard var current = try fieldType(name, in: fields, path.span, isTop: true) else {
            return nil
        }
        var rest = path.components.dropFirst()
        while let component = rest.popFirst() {
            if case .collection(let symbol) = component {
                return try type(of: symbol, over: current, rest, path.span)
            }
            guard let next = try step(component, from: current, path.span) else { return nil }
            current = next
        }
        return current
    }

    private func fieldType(
        _ name: String, in known: [String: Field], _ span: SourceSpan, isTop: Bool
    ) throws(PredicateError) -> FieldType? {
        guard let field = known[name] else {
            if isTop, let type = Self.systemFields[name] { return type }
            let fields = known.keys.sorted()
            let folded = name.lowercased()
            let nearest =
                fields.first { $0.lowercased() == folded }
                ?? NearestWord.to(name, among: isTop ? fields + SystemField.typedNames : fields)
            let names = known.filter(\.value.isQueryable).keys.sorted().prefix(20)
            throw PredicateError(
                .check, "the field \(name.prefix(60)) is unknown", at: span,
                found: "`\(name.prefix(60))`",
                expected: names.isEmpty
                    ? "a queryable field, but there is none"
                    : "one of \(names.joined(separator: ", "))",
                hint: nearest.map { "did you mean \($0)?" })
        }
        guard field.isQueryable else {
            throw PredicateError(
                .check, "the field \(name.prefix(60)) is not queryable", at: span,
                found: "`\(name.prefix(60))`", expected: "a queryable field")
        }
        return field.type
    }

    /// Returns the type after one more component of a path, or `nil` if it is not known.
    func step(
        _ component: RecordPredicate.RecordPath.Component, from type: FieldType,
        _ span: SourceSpan
    ) throws(PredicateError) -> FieldType? {
        switch (component, type) {
        case (.member(let name), .map(let members?)):
            return try fieldType(name, in: members, span, isTop: false)
        case (.member, .list(let element)):
            return try step(component, from: element, span).map { .list($0) }
        case (.member("self"), let own) where own.isScalar: return own
        case (.member("recordName"), .reference), (.member("recordID"), .reference):
            return .string
        case (.member(let name), .reference):
            throw mismatch(
                "a reference has no member \(name.prefix(60)): only the name of the "
                    + "referenced record is known", span, found: type.word, expected: "recordName")
        case (.member("description"), let own) where own.isScalar: return .string
        case (.member(let name), .string) where Self.propertiesOfTexts[name] != nil:
            return Self.propertiesOfTexts[name]
        case (.member(let name), .string), (.member(let name), .integer),
            (.member(let name), .double), (.member(let name), .boolean),
            (.member(let name), .timestamp), (.member(let name), .bytes),
            (.member(let name), .location):
            throw mismatch(
                "\(type.word) has no member \(name.prefix(60))", span, found: type.word,
                expected: "a dictionary")
        case (.size, _):
            try checkCollection(type, "[SIZE]", span)
            return .integer
        case (.element, .list(let element)), (.first, .list(let element)),
            (.last, .list(let element)):
            return element
        case (.element, _):
            try checkCollection(type, "an index", span)
            return nil
        case (.first, _), (.last, _):
            guard type.isScalar else { return nil }
            throw mismatch(
                "\(type.word) has no elements", span, found: type.word, expected: "a list")
        default: return nil
        }
    }

    /// Properties of Cocoa's strings that conditions in practice use.
    private static let propertiesOfTexts: [String: FieldType] = [
        "length": .integer, "uppercaseString": .string, "lowercaseString": .string,
        "intValue": .integer, "integerValue": .integer, "longLongValue": .integer,
        "doubleValue": .double, "floatValue": .double,
    ]
}

extension RecordSchema.FieldType {
    /// Creates the type of a constant, or returns `nil` for nil, which is compatible with every
    /// type.
    init?(of value: FieldValue) {
        switch value {
        case .null: return nil
        case .bool: self = .boolean
        case .integer: self = .integer
        case .double: self = .double
        case .string: self = .string
        case .timestamp: self = .timestamp
        case .bytes: self = .bytes
        case .reference: self = .reference
        case .location: self = .location
        case .uuid: self = .uuid
        case .objectID: self = .objectID
        case .list(let values): self = .list(Self.common(values))
        case .set(let values): self = .list(Self.common(Array(values)))
        case .map: self = .map(nil)
        }
    }

    /// Returns the common type of all values except nil, or `mixed` if there is none.
    private static func common(_ values: [FieldValue]) -> Self {
        var common: Self?
        for value in values {
            guard let type = Self(of: value) else { continue }
            guard let known = common else {
                common = type
                continue
            }
            if !known.agrees(with: type) { return .mixed }
        }
        return common ?? .mixed
    }

    /// The type of the elements, if this type can be a collection.
    var element: Self? {
        switch self {
        case .list(let element): element
        case .map, .mixed: .mixed
        default: nil
        }
    }

    /// Returns whether values of the two types can be equal.
    func agrees(with other: Self) -> Bool {
        switch (self, other) {
        case (.mixed, _), (_, .mixed), (.map, .map): true
        case (.integer, .double), (.double, .integer), (.boolean, .integer), (.integer, .boolean),
            (.boolean, .double), (.double, .boolean):
            true
        case (.list(let a), .list(let b)): a.agrees(with: b)
        default: self == other
        }
    }

    /// Returns whether values of this type can match a value of type `wanted` by Minapp's rules:
    /// booleans are not numbers; a text names a UUID, an object ID or the record of a reference; a
    /// date may be stored as a text; any element of a list counts.
    func agreesInMinapp(with wanted: Self) -> Bool {
        switch (self, wanted) {
        case (.boolean, .integer), (.boolean, .double), (.integer, .boolean), (.double, .boolean):
            false
        case (.reference, .string), (.uuid, .string), (.objectID, .string), (.string, .timestamp):
            true
        case (.list(let element), _): element.agreesInMinapp(with: wanted)
        default: agrees(with: wanted)
        }
    }

    /// Whether values of this type can be ordered.
    var hasOrder: Bool {
        switch self {
        case .string, .integer, .double, .boolean, .timestamp, .mixed: true
        case .bytes, .reference, .location, .uuid, .objectID, .list, .map: false
        }
    }

    /// The type's name in error messages.
    var word: String {
        switch self {
        case .string: "a text"
        case .integer, .double: "a number"
        case .boolean: "a boolean"
        case .timestamp: "a date"
        case .bytes: "data"
        case .reference: "a reference"
        case .location: "a location"
        case .uuid: "a UUID"
        case .objectID: "an object ID"
        case .list: "a list"
        case .map: "a dictionary"
        case .mixed: "a value of any kind"
        }
    }
}
