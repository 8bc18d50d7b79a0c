import RelayModel

extension RQLParser {
    /// Reads an arithmetic operator and its right operand.
    mutating func arithmetic(
        _ left: Part, _ symbol: RecordPredicate.ArithmeticOperator,
        right read: (inout RQLParser) throws(PredicateError) -> Part
    ) throws(PredicateError) -> Part {
        guard case .operand(let left) = left else {
            throw unexpected(expected: "AND, OR or the end of the query")
        }
        advance()
        let start = current
        guard case .operand(let right) = try read(&self) else {
            throw unexpected(start, expected: "a value or path")
        }
        let depth = max(left.depth, right.depth) + 1
        guard depth <= Limits.maximumPredicateDepth else { throw tooDeep(at: left.span) }
        if let first = left.quantifier, let second = right.quantifier, first != second {
            throw PredicateError(
                .check,
                "one side of a comparison can have only one quantifier, found "
                    + "\(first.rawValue) and \(second.rawValue)", at: right.span,
                expected: "one quantifier")
        }
        return .operand(
            Operand(
                expression: .arithmetic(symbol, left.expression, right.expression),
                quantifier: left.quantifier ?? right.quantifier,
                span: SourceSpan(
                    offset: left.span.offset, length: lastEnd - left.span.offset),
                depth: depth, shape: .compound))
    }
}
