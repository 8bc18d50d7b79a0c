import RelayModel

/// Walks a predicate, and refuses what cannot be meant.
struct PredicateCheck {
    typealias Node = RecordPredicate.Node
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression

    var schema: RecordSchema?
    /// The variables that have a value at this place.
    var variables: Set<String>
    /// How patterns are compiled.
    let preparation: Preparation
    /// The schema check for comparisons under other rules than NSPredicate's.
    let foreign: ForeignCheck
    /// Whether the next node is negated, or `nil` within expressions, where both cases are
    /// possible.
    var isNegated: Bool? = false
    /// The number of the predicate's own comparisons that have been checked.
    var looked = 0

    /// Checks a comparison against a schema by the rules of its dialect.
    ///
    /// Returns `false` if the dialect has no rules of its own.
    typealias ForeignCheck =
        @Sendable (Comparison, RecordSchema) throws(PredicateError) -> Bool

    /// Checks a whole predicate.
    mutating func check(_ predicate: RecordPredicate) throws(PredicateError) {
        try Self.checkText(predicate.canonicalText)
        try check(predicate.root)
        _ = try PreparedNode(predicate.root, preparation)
        try schema?.checkIndexedField(of: predicate)
    }

    private static func checkText(_ text: String) throws(PredicateError) {
        let length = text.utf8.count
        guard length <= Limits.maximumPredicateBytes else {
            throw PredicateError(
                .check,
                "the canonical text is longer than \(Limits.maximumPredicateBytes) bytes",
                found: "\(length) bytes",
                expected: "at most \(Limits.maximumPredicateBytes) bytes")
        }
        // Escape sequences, which are written in letters and digits, can produce combining marks.
        guard !text.hasEndlessMarks else {
            throw PredicateError(
                .check, "a text has too many combining marks in a row",
                found: "more than \(Limits.maximumMarksInARow)",
                expected: "at most \(Limits.maximumMarksInARow)")
        }
    }

    mutating func check(_ node: Node) throws(PredicateError) {
        switch node {
        case .constant: return
        case .comparison(let comparison): try check(comparison)
        case .and(let nodes), .or(let nodes):
            for node in nodes { try check(node) }
        case .not(let inner):
            isNegated = isNegated.map { !$0 }
            try check(inner)
            isNegated = isNegated.map { !$0 }
        }
    }

    /// Checks a condition within an expression.
    private mutating func check(inner node: Node) throws(PredicateError) {
        let outer = isNegated
        isNegated = nil
        try check(node)
        isNegated = outer
    }

    private mutating func check(_ comparison: Comparison) throws(PredicateError) {
        // Comparisons within an expression are reported as part of the comparison around it.
        guard isNegated != nil else { return try judge(comparison) }
        let number = looked
        looked += 1
        do throws(PredicateError) {
            try judge(comparison)
        } catch {
            var refusal = error
            refusal.comparison = number
            throw refusal
        }
    }

    private mutating func judge(_ comparison: Comparison) throws(PredicateError) {
        try check(comparison.left, at: comparison.leftSpan)
        try check(comparison.right, at: comparison.rightSpan)
        try checkQuantifier(comparison)
        if comparison.rules == .apple { try checkConstants(comparison) }
        guard let schema, schema.concerns(comparison) else { return }
        if try !foreign(comparison, schema) {
            try schema.check(comparison, isNegated: isNegated)
        }
    }

    private func checkQuantifier(_ comparison: Comparison) throws(PredicateError) {
        guard let quantifier = comparison.quantifier, comparison.rules == .apple else { return }
        switch comparison.left.literal {
        case nil, .null?, .list?, .set?, .map?: return
        case let value?:
            throw failure(
                "\(quantifier.rawValue) needs a collection", at: comparison.leftSpan,
                found: value.kind, expected: "a list")
        }
    }

    // MARK: Constants

    private func checkConstants(_ comparison: Comparison) throws(PredicateError) {
        let word = comparison.comparator.rawValue
        switch comparison.comparator {
        case .equal, .notEqual, .contains, .geoWithin: return
        case .less, .lessOrEqual, .greater, .greaterOrEqual: try checkOrder(comparison)
        case .between: try checkBounds(comparison)
        case .in:
            switch comparison.right.literal {
            case nil, .null?, .list?, .set?, .map?, .string?: return
            case let value?:
                throw failure(
                    "IN needs a list or a text on its right", at: comparison.rightSpan,
                    found: value.kind, expected: "a list such as {1, 2}")
            }
        case .beginsWith, .endsWith, .like, .matches, .typeEquals:
            if comparison.quantifier == nil {
                try checkText(comparison.left, comparison.leftSpan, word)
            }
            try checkText(comparison.right, comparison.rightSpan, word)
        case .tokenMatches:
            if case .list? = comparison.right.literal { return }
            try checkText(comparison.right, comparison.rightSpan, word)
        }
    }

    private func checkText(
        _ side: Expression, _ span: SourceSpan, _ word: String
    ) throws(PredicateError) {
        switch side.literal {
        case nil, .null?, .string?: return
        case let value?:
            throw failure("\(word) compares texts", at: span, found: value.kind, expected: "a text")
        }
    }

    private func checkOrder(_ comparison: Comparison) throws(PredicateError) {
        let left = comparison.quantifier == nil ? comparison.left.literal : nil
        let right = comparison.right.literal
        try checkOrdered(left, comparison.leftSpan)
        try checkOrdered(right, comparison.rightSpan)
        guard let left, let right, !left.isNull, !right.isNull else { return }
        guard left.orderClass == right.orderClass else {
            throw failure(
                "\(left.kind) cannot be ordered against \(right.kind)", at: comparison.span,
                found: right.kind, expected: left.kind)
        }
    }

    private func checkOrdered(
        _ value: FieldValue?, _ span: SourceSpan
    ) throws(PredicateError) {
        guard let value, !value.isNull, value.orderClass == nil else { return }
        throw failure(
            "\(value.kind) has no order", at: span, found: value.kind,
            expected: "a number, a text or a date")
    }

    private func checkBounds(_ comparison: Comparison) throws(PredicateError) {
        var bounds: [FieldValue?] = []
        switch comparison.right {
        case .list(let elements): bounds = elements.map(\.literal)
        case .constant(.list(let values)): bounds = values
        case .constant(let value):
            throw failure(
                "BETWEEN needs a list of two bounds", at: comparison.rightSpan,
                found: value.kind, expected: "{lower, upper}")
        default: return
        }
        guard bounds.count == 2 else {
            throw failure(
                "BETWEEN needs a list of two bounds", at: comparison.rightSpan,
                found: "a list of \(bounds.count)", expected: "{lower, upper}")
        }
        for bound in bounds { try checkOrdered(bound, comparison.rightSpan) }
        guard let lower = bounds[0], let upper = bounds[1], !lower.isNull, !upper.isNull else {
            return
        }
        guard lower.orderClass == upper.orderClass else {
            throw failure(
                "the bounds of BETWEEN are of different kinds", at: comparison.rightSpan,
                found: upper.kind, expected: lower.kind)
        }
    }

    // MARK: Expressions

    private mutating func check(
        _ expression: Expression, at span: SourceSpan
    ) throws(PredicateError) {
        switch expression {
        case .constant(let value): try checkLength(value, at: span)
        case .anyKey: return
        case .path(let path): try check(path, at: span)
        case .variable(let name): try checkVariable(name, at: span)
        case .member(let base, let path):
            try check(base, at: span)
            try check(path, at: span)
        case .list(let elements):
            for element in elements { try check(element, at: span) }
        case .call(_, let arguments):
            for argument in arguments { try check(argument, at: span) }
        case .arithmetic(let symbol, let left, let right):
            for side in [left, right] {
                try check(side, at: span)
                try checkOperand(side, of: symbol, at: span)
            }
        case .negative(let inner), .complement(let inner), .cast(let inner, _):
            try check(inner, at: span)
        case .conditional(let test, let first, let second):
            try check(inner: test)
            try check(first, at: span)
            try check(second, at: span)
        case .subquery(let list, let variable, let condition):
            try check(list, at: span)
            let outer = (variables, schema)
            variables.insert(variable)
            // The element's type is known as far as the list's type is.
            let element = try? schema?.type(of: list)?.element
            schema?.elements[variable] = element
            try check(inner: condition)
            (variables, schema) = outer
        case .assignment(let name, let inner):
            try check(inner, at: span)
            variables.insert(name)
        }
    }

    private mutating func check(
        _ path: RecordPredicate.RecordPath, at span: SourceSpan
    ) throws(PredicateError) {
        for component in path.components {
            switch component {
            case .variableMember(let name): try checkVariable(name, at: path.span)
            case .element(let index): try check(index, at: path.span)
            default: continue
            }
        }
    }

    private func checkVariable(_ name: String, at span: SourceSpan) throws(PredicateError) {
        guard !variables.contains(name) else { return }
        throw failure(
            "the variable $\(name) has no value", at: span, found: "`$\(name)`",
            expected: "a constant or an argument")
    }

    private func checkLength(_ value: FieldValue, at span: SourceSpan) throws(PredicateError) {
        guard case .list(let values) = value,
            values.count > Limits.maximumPredicateListElements
        else { return }
        throw failure(
            "the list has more than \(Limits.maximumPredicateListElements) elements", at: span,
            found: "\(values.count) elements",
            expected: "at most \(Limits.maximumPredicateListElements) elements")
    }

    private func checkOperand(
        _ operand: Expression, of symbol: RecordPredicate.ArithmeticOperator,
        at span: SourceSpan
    ) throws(PredicateError) {
        if case .call(.now, _) = operand {
            throw failure(
                "`\(symbol.rawValue)` calculates with numbers, and now() is a date", at: span,
                found: "a date", expected: "a number")
        }
        guard let value = operand.literal else { return }
        switch symbol {
        case .union, .intersect, .minus:
            switch value {
            case .list, .set, .map: return
            default: break
            }
            throw failure(
                "\(symbol.rawValue) combines collections", at: span, found: value.kind,
                expected: "a list")
        default:
            guard Number(value) == nil else { return }
            throw failure(
                "`\(symbol.rawValue)` calculates with numbers", at: span, found: value.kind,
                expected: "a number")
        }
    }

    private func failure(
        _ reason: String, at span: SourceSpan, found: String? = nil, expected: String? = nil
    ) -> PredicateError {
        PredicateError(.check, reason, at: span, found: found, expected: expected)
    }
}

extension FieldValue {
    /// Classes of values.
    ///
    /// Only values of the same class can be ordered.
    enum OrderClass {
        case number
        case text
        case date
    }

    /// The class by which the value is ordered, or `nil` if it has no order.
    var orderClass: OrderClass? {
        switch self {
        case .bool, .integer, .double: .number
        case .string: .text
        case .timestamp: .date
        default: nil
        }
    }
}
