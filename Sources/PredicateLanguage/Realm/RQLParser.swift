import RelayModel

/// A parser that turns the tokens of a Realm query into the predicate tree, by realm-core's
/// grammar.
///
/// A parenthesis may open a condition or an expression. The same functions read both and return a
/// ``Part``, so that no text is read twice.
struct RQLParser {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression
    typealias Comparison = RecordPredicate.Comparison
    typealias Quantifier = RecordPredicate.Quantifier

    /// A part of the text that has been read.
    enum Part {
        /// A condition.
        case condition(Node)
        /// An expression that has a value.
        case operand(Operand)
    }

    /// An expression, with the properties that the grammar needs to know.
    struct Operand {
        var expression: Expression
        var quantifier: Quantifier?
        var span: SourceSpan
        /// The depth of nesting of the expression.
        var depth = 1
        /// The grammatical kind of the expression, which decides what may follow it.
        var shape = Shape.value

        /// The kinds of expressions in the grammar.
        enum Shape {
            /// A constant, path, list, aggregate or subquery.
            case value
            /// A list in braces.
            case list
            /// A path, after which GEOWITHIN is allowed.
            case path
            /// Arithmetic, or an expression in parentheses.
            case compound
        }
    }

    let tokens: [RQLToken]
    let text: String
    let arguments: [FieldValue]
    var position = 0
    var depth = 0
    /// The remaining room for the canonical text.
    var room = TextRoom()
    /// The variables of the enclosing subqueries, innermost last: as written, and as in the tree.
    var variables: [(written: String, name: String)] = []

    init(tokens: [RQLToken], text: String, arguments: [FieldValue]) {
        self.tokens = tokens
        self.text = text
        self.arguments = arguments
    }

    // MARK: Conditions

    /// Reads a whole condition.
    mutating func query() throws(PredicateError) -> Node {
        let part = try disjunction()
        return try condition(part)
    }

    mutating func disjunction() throws(PredicateError) -> Part {
        let first = try conjunction()
        guard isDisjunction(current) else { return first }
        var nodes = [try condition(first)]
        while isDisjunction(current) {
            advance()
            let next = try conjunction()
            nodes.append(try condition(next))
        }
        return .condition(.or(nodes))
    }

    private mutating func conjunction() throws(PredicateError) -> Part {
        let first = try negation()
        guard isConjunction(current) else { return first }
        var nodes = [try condition(first)]
        while isConjunction(current) {
            advance()
            let next = try negation()
            nodes.append(try condition(next))
        }
        return .condition(.and(nodes))
    }

    private mutating func negation() throws(PredicateError) -> Part {
        guard current.kind == .keyword(.not) || current.kind == .symbol(.exclamation) else {
            return try comparison()
        }
        advance()
        try descend()
        defer { depth -= 1 }
        let inner = try negation()
        return .condition(.not(try condition(inner)))
    }

    private func isDisjunction(_ token: RQLToken) -> Bool {
        token.kind == .keyword(.or) || token.kind == .symbol(.doubleBar)
    }

    private func isConjunction(_ token: RQLToken) -> Bool {
        token.kind == .keyword(.and) || token.kind == .symbol(.doubleAmpersand)
    }

    /// Returns a part as a condition, or throws at the current token, which follows the part.
    ///
    /// Callers must read the part before the call. If it were read as the argument, the parser
    /// would be copied for the call first, and the error would be at the beginning of the part.
    private func condition(_ part: Part) throws(PredicateError) -> Node {
        switch part {
        case .condition(let node): return node
        case .operand:
            throw unexpected(expected: "a comparison operator", hint: hintForOperator)
        }
    }

    // MARK: Comparisons

    private mutating func comparison() throws(PredicateError) -> Part {
        switch current.kind {
        case .keyword(.truePredicate):
            advance()
            return .condition(.constant(true))
        case .keyword(.falsePredicate):
            advance()
            return .condition(.constant(false))
        default: break
        }
        let part = try sum()
        guard case .operand(let left) = part else { return part }
        guard let comparator = comparator(of: current) else { return part }
        return .condition(try comparison(left, comparator))
    }

    mutating func comparison(
        _ left: Operand, _ comparator: RecordPredicate.Comparator
    ) throws(PredicateError) -> Node {
        let symbol = current
        let takesValues = !comparator.isRelational && comparator != .in
        if takesValues, left.shape == .compound {
            throw unexpected(expected: "==, !=, IN, <, <=, > or >= after an expression")
        }
        advance()
        if comparator == .geoWithin { return try geoWithin(left) }
        var comparison = Comparison(left.expression, comparator, .constant(.null))
        if current.kind == .symbol(.caseOption) {
            guard symbol.takesCaseOption else {
                throw unexpected(expected: "the right side, without [c]")
            }
            comparison.options = .ignoringCase
            advance()
        }
        let start = current
        guard case .operand(let right) = takesValues ? try value() : try sum() else {
            throw unexpected(start, expected: "a value or path on the right side")
        }
        if comparator == .between, right.shape != .list {
            throw unexpected(start, expected: "a list of two bounds in braces")
        }
        comparison.right = right.expression
        comparison.quantifier = left.quantifier
        comparison.rightQuantifier = right.quantifier
        comparison.rules = .realm
        comparison.span = SourceSpan(
            offset: left.span.offset, length: lastEnd - left.span.offset)
        try checkBounds(comparison, at: right.span)
        try checkPattern(comparison, at: right.span)
        return .comparison(comparison)
    }

    private func checkBounds(
        _ comparison: Comparison, at span: SourceSpan
    ) throws(PredicateError) {
        guard comparison.comparator == .between else { return }
        let count =
            switch comparison.right {
            case .list(let elements): elements.count
            case .constant(.list(let values)): values.count
            default: 2
            }
        guard count == 2 else {
            throw PredicateError(
                .check, "BETWEEN needs a list of two bounds, found \(count)", at: span,
                expected: "{lower, upper}")
        }
    }

    /// Limits the length of a constant pattern, because matching takes its length times that of the
    /// text.
    private func checkPattern(
        _ comparison: Comparison, at span: SourceSpan
    ) throws(PredicateError) {
        guard comparison.comparator == .like, let pattern = comparison.right.literal,
            pattern.byteCount > Limits.maximumRegularExpressionBytes
        else { return }
        throw PredicateError(
            .check,
            "a pattern can have at most \(Limits.maximumRegularExpressionBytes) bytes, found "
                + "\(pattern.byteCount)", at: span,
            expected: "at most \(Limits.maximumRegularExpressionBytes) bytes")
    }

    private func comparator(of token: RQLToken) -> RecordPredicate.Comparator? {
        switch token.kind {
        case .symbol(.equal), .symbol(.singleEqual): .equal
        case .symbol(.notEqual), .symbol(.lessGreater): .notEqual
        case .symbol(.less): .less
        case .symbol(.lessOrEqual), .symbol(.equalLess): .lessOrEqual
        case .symbol(.greater): .greater
        case .symbol(.greaterOrEqual), .symbol(.equalGreater): .greaterOrEqual
        case .keyword(.isIn): .in
        case .keyword(.between): .between
        case .keyword(.beginsWith): .beginsWith
        case .keyword(.endsWith): .endsWith
        case .keyword(.contains): .contains
        case .keyword(.like): .like
        case .keyword(.text): .tokenMatches
        case .keyword(.geoWithin): .geoWithin
        default: nil
        }
    }

    // MARK: Arithmetic

    private mutating func sum() throws(PredicateError) -> Part {
        var part = try product()
        while current.kind == .symbol(.plus) || current.kind == .symbol(.minus) {
            let symbol: RecordPredicate.ArithmeticOperator =
                current.kind == .symbol(.plus) ? .add : .subtract
            part = try arithmetic(part, symbol) { parser throws(PredicateError) in
                try parser.product()
            }
        }
        return part
    }

    private mutating func product() throws(PredicateError) -> Part {
        var part = try value()
        while current.kind == .symbol(.asterisk) || current.kind == .symbol(.slash) {
            let symbol: RecordPredicate.ArithmeticOperator =
                current.kind == .symbol(.asterisk) ? .multiply : .divide
            part = try arithmetic(part, symbol) { parser throws(PredicateError) in
                try parser.value()
            }
        }
        return part
    }
}
