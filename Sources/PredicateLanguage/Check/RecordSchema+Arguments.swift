//  What functions and the operators on collections are defined for: with anything else every
//  evaluation is an error, so that the condition would never fire.

extension RecordSchema {
    typealias Function = RecordPredicate.Function
    typealias CollectionOperator = RecordPredicate.CollectionOperator
    typealias Component = RecordPredicate.RecordPath.Component

    /// Refuses an argument of a function that is defined for others; `isOnly` if it is the only
    /// one.
    func checkArgument(
        _ argument: Expression, _ type: FieldType?, of function: Function, isOnly: Bool
    ) throws(PredicateError) {
        guard let type,
            let wanted = Self.wanted(by: function, insteadOf: type, isOnly: isOnly)
        else { return }
        throw mismatch(
            "\(function.rawValue) is not defined for \(type.word)", span(of: argument),
            found: type.word, expected: wanted)
    }

    /// What a function takes; `nil` if it may take the type.
    private static func wanted(
        by function: Function, insteadOf type: FieldType, isOnly: Bool
    ) -> String? {
        switch function {
        case .distance: return type.agrees(with: .location) ? nil : "a location"
        case .uppercase, .lowercase, .length: return type.agrees(with: .string) ? nil : "a text"
        case .modulus, .squareRoot, .logarithm, .naturalLogarithm, .exponential, .floor,
            .ceiling, .absolute, .truncate:
            return type.agrees(with: .double) ? nil : "a number"
        case .sum, .average, .median, .standardDeviation:
            return type.statisticElement(isOnly: isOnly).agrees(with: .double) ? nil : "numbers"
        case .minimum, .maximum:
            return type.statisticElement(isOnly: isOnly).hasOrder ? nil : "numbers, texts or dates"
        case .count, .mode, .now, .noIndex, .tokenize, .geoBox, .geoCircle, .geoPolygon:
            return nil
        }
    }

    /// The type of the least or the greatest of arguments; `nil` where it is not known.
    static func extreme(of arguments: [FieldType?]) -> FieldType? {
        var common: FieldType?
        for argument in arguments {
            guard let type = argument?.statisticElement(isOnly: arguments.count == 1)
            else { return nil }
            guard type == common ?? type else { return nil }
            common = type
        }
        return common
    }

    /// Refuses what has no meaning as another type: casting it is an error with every value.
    func checkCast(
        _ inner: Expression, _ type: FieldType, to target: RecordPredicate.CastType
    ) throws(PredicateError) {
        guard let wanted = Self.wanted(by: target, insteadOf: type) else { return }
        throw mismatch(
            "CAST to \(target.rawValue) is not defined for \(type.word)", span(of: inner),
            found: type.word, expected: wanted)
    }

    /// What can be cast to another type; `nil` if this type may be.
    ///
    /// A link may stand as an embedded object, and a place as two numbers.
    private static func wanted(
        by target: RecordPredicate.CastType, insteadOf type: FieldType
    ) -> String? {
        switch (target, type) {
        case (.string, _), (_, .mixed),
            (.number, .integer), (.number, .double), (.number, .boolean), (.number, .string),
            (.number, .timestamp),
            (.date, .integer), (.date, .double), (.date, .boolean), (.date, .timestamp),
            (.data, .bytes), (.data, .string), (.uuid, .uuid), (.uuid, .string),
            (.objectID, .objectID), (.objectID, .string), (.set, .list), (.set, .location),
            (.dictionary, .map), (.dictionary, .list), (.dictionary, .reference),
            (.dictionary, .location), (.location, .location), (.location, .list),
            (.reference, .reference), (.reference, .string), (.reference, .list):
            return nil
        case (.number, _): return "a number, a text or a date"
        case (.date, _): return "a number of seconds since 2001"
        case (.data, _), (.uuid, _), (.objectID, _), (.reference, _): return "a text"
        case (.set, _), (.dictionary, _), (.location, _): return "a list"
        }
    }

    /// The type of an operator on a collection, whose elements the rest of its path is applied to;
    /// `nil` where it is not known.
    func type(
        of symbol: CollectionOperator, over collection: FieldType,
        _ rest: ArraySlice<Component>, _ span: SourceSpan
    ) throws(PredicateError) -> FieldType? {
        let word = "@\(symbol.rawValue)"
        try checkCollection(collection, word, span)
        if symbol == .count { return .integer }
        guard let element = collection.element,
            let values = try walk(rest, from: element, span)
        else { return symbol == .sum || symbol == .average ? .double : nil }
        switch symbol {
        case .sum, .average:
            guard values.agrees(with: .double) else {
                throw mismatch(
                    "\(word) is not defined for \(values.word)", span, found: values.word,
                    expected: "numbers")
            }
            return .double
        case .minimum, .maximum:
            guard values.hasOrder else {
                throw mismatch(
                    "\(word) is not defined for \(values.word)", span, found: values.word,
                    expected: "numbers, texts or dates")
            }
            return values
        case .unionOfObjects, .distinctUnionOfObjects: return .list(values)
        default: return nil
        }
    }

    /// The type of what the rest of a path leads to, from each element of a collection.
    func walk(
        _ path: ArraySlice<Component>, from start: FieldType, _ span: SourceSpan
    ) throws(PredicateError) -> FieldType? {
        var current = start
        var rest = path
        while let component = rest.popFirst() {
            if case .collection(let symbol) = component {
                return try type(of: symbol, over: current, rest, span)
            }
            guard let next = try step(component, from: current, span) else { return nil }
            current = next
        }
        return current
    }

    /// Refuses what is no collection.
    func checkCollection(
        _ type: FieldType, _ word: String, _ span: SourceSpan
    ) throws(PredicateError) {
        guard type.isScalar else { return }
        throw mismatch(
            "\(word) is not defined for \(type.word)", span, found: type.word, expected: "a list")
    }

    /// Where an operand stands, if it is a field.
    func span(of operand: Expression) -> SourceSpan {
        if case .path(let path) = operand { path.span } else { .none }
    }
}

private extension RecordSchema.FieldType {
    /// What a statistic is made of: the elements of its only argument, or its arguments.
    func statisticElement(isOnly: Bool) -> Self {
        guard isOnly, case .list(let element) = self else { return self }
        return element
    }
}
