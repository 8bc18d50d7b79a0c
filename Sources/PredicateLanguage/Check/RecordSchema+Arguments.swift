// The types that functions, casts and collection operators accept. With any other type every
// evaluation is an error, so the condition would never fire.

extension RecordSchema {
    typealias Function = RecordPredicate.Function
    typealias CollectionOperator = RecordPredicate.CollectionOperator
    typealias Component = RecordPredicate.RecordPath.Component

    /// Throws if `function` is not defined for the type of `argument`.
    ///
    /// `isOnly` says whether it is the only argument.
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

    /// Returns, in words, what a function takes, or `nil` if it accepts `type`.
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

    /// Returns the type of the least or the greatest of `arguments`, or `nil` if it is not known.
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

    /// Throws if values of `type` cannot be cast to `target`, so that every evaluation is an error.
    func checkCast(
        _ inner: Expression, _ type: FieldType, to target: RecordPredicate.CastType
    ) throws(PredicateError) {
        guard let wanted = Self.wanted(by: target, insteadOf: type) else { return }
        throw mismatch(
            "CAST to \(target.rawValue) is not defined for \(type.word)", span(of: inner),
            found: type.word, expected: wanted)
    }

    /// Returns, in words, what can be cast to `target`, or `nil` if `type` can be.
    ///
    /// A reference may be stored as an embedded object, and a location as two numbers.
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

    /// Returns the type of a collection operator's value, or `nil` if it is not known.
    ///
    /// `rest` is the part of the path after the operator, which is applied to each element.
    ///
    /// Throws if the operator is not defined for the type.
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

    /// Returns the type of the value at the end of `path`, which starts at a value of type `start`.
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

    /// Throws if `type` is not a collection.
    func checkCollection(
        _ type: FieldType, _ word: String, _ span: SourceSpan
    ) throws(PredicateError) {
        guard type.isScalar else { return }
        throw mismatch(
            "\(word) is not defined for \(type.word)", span, found: type.word, expected: "a list")
    }

    /// Returns the place of an operand in the text, if it is a field.
    func span(of operand: Expression) -> SourceSpan {
        if case .path(let path) = operand { path.span } else { .none }
    }
}

private extension RecordSchema.FieldType {
    /// The type that a statistic is computed from: the elements of its only argument, or each
    /// argument.
    func statisticElement(isOnly: Bool) -> Self {
        guard isOnly, case .list(let element) = self else { return self }
        return element
    }
}
