import RelayModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PredicateExpressions.Variable: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        guard let expression = translation.names[key] else {
            throw PredicateError(
                .check, "a second input cannot be translated", expected: "one input")
        }
        return expression
    }
}

extension PredicateExpressions.KeyPath: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        if case .collectionCount? = kind, let filter = root as? any FoundationFilter {
            return try filter.count(translation)
        }
        let base = try translation.expression(root)
        guard let kind else {
            return translation.member(.member(try translation.name(of: keyPath)), of: base)
        }
        guard Root.Output.self != String.self else {
            throw PredicateError(
                .check, "\(kind) of a text cannot be translated", found: "\(kind)",
                expected: "a comparison of the text")
        }
        switch kind {
        case .collectionCount: return translation.member(.collection(.count), of: base)
        case .collectionFirst: return translation.member(.first, of: base)
        case .bidirectionalCollectionLast: return translation.member(.last, of: base)
        default:
            throw PredicateError(
                .check, "\(kind) cannot be translated", found: "\(kind)",
                expected: "a comparison, membership or arithmetic")
        }
    }
}

extension PredicateExpressions.Value: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        guard let value = FieldValue(foundation: value) else {
            throw PredicateError(
                .check, "a value of type \(Output.self) cannot be translated",
                found: "\(Output.self)", expected: "a text, number, boolean, date or UUID")
        }
        return .constant(value)
    }
}

extension PredicateExpressions.NilLiteral: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        .constant(.null)
    }
}

extension PredicateExpressions.NilCoalesce: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        let left = try translation.expression(lhs)
        let isNil = translation.compare(left, .equal, .constant(.null))
        return .conditional(isNil, try translation.expression(rhs), left)
    }
}

extension PredicateExpressions.ForcedUnwrap: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        try translation.expression(inner)
    }
}

extension PredicateExpressions.OptionalFlatMap: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        translation.names[variable.key] = try translation.expression(wrapped)
        return try translation.expression(transform)
    }
}

extension PredicateExpressions.Conditional: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        .conditional(
            try translation.node(test), try translation.expression(trueBranch),
            try translation.expression(falseBranch))
    }
}

extension PredicateExpressions.Arithmetic: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        let symbol: RecordPredicate.ArithmeticOperator
        switch op {
        case .add: symbol = .add
        case .subtract: symbol = .subtract
        case .multiply: symbol = .multiply
        @unknown default:
            throw PredicateError(
                .check, "this arithmetic cannot be translated", expected: "+, -, * or /")
        }
        return .arithmetic(
            symbol, try translation.expression(lhs), try translation.expression(rhs))
    }
}

extension PredicateExpressions.UnaryMinus: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        .negative(try translation.expression(wrapped))
    }
}

extension PredicateExpressions.CollectionIndexSubscript: FoundationOperand {
    func expression(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        translation.member(
            .element(try translation.expression(index)), of: try translation.expression(wrapped))
    }
}

/// A `list.filter { … }`, which is translated where its elements are counted.
protocol FoundationFilter {
    func count(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression
}

extension PredicateExpressions.Filter: FoundationFilter {
    func count(
        _ translation: FoundationTranslation
    ) throws(PredicateError) -> RecordPredicate.Expression {
        try translation.count(sequence, variable.key, filter, isNegated: false)
    }
}

extension FieldValue {
    /// Creates the value of a constant in a `#Predicate`, or returns `nil` if a record cannot hold
    /// such a value.
    init?(foundation value: Any) {
        switch value {
        case let value as FieldValue: self = value
        case let text as String: self = .string(text)
        case let flag as Bool: self = .bool(flag)
        case let number as any BinaryInteger:
            guard let number = Int64(exactly: number) else { return nil }
            self = .integer(number)
        case let number as Double: self = .double(number)
        case let number as Float: self = .double(Double(number))
        case let date as Date:
            guard let moment = Timestamp(secondsSince1970: date.timeIntervalSince1970) else {
                return nil
            }
            self = .timestamp(moment)
        case let uuid as UUID:
            guard let bytes = UUIDBytes(uuid.uuidString) else { return nil }
            self = .uuid(bytes)
        case let data as Data: self = .bytes(Array(data))
        case let values as [Any]:
            let elements = values.compactMap(FieldValue.init(foundation:))
            guard elements.count == values.count else { return nil }
            self = .list(elements)
        default:
            let mirror = Mirror(reflecting: value)
            guard mirror.displayStyle == .optional else { return nil }
            guard let some = mirror.children.first else {
                self = .null
                return
            }
            self.init(foundation: some.value)
        }
    }
}
