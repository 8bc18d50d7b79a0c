import RelayModel

extension FormatParser {
    typealias Arithmetic = RecordPredicate.ArithmeticOperator

    /// Returns the binary operator at the current token with its binding strength.
    ///
    /// Only `**` is right-associative.
    private func arithmeticOperator() -> (symbol: Arithmetic, strength: Int)? {
        switch token.kind {
        case .symbol("|"): (.bitOr, 2)
        case .symbol("^"): (.bitXor, 3)
        case .symbol("&"): (.bitAnd, 4)
        case .symbol("<<"): (.shiftLeft, 5)
        case .symbol(">>"): (.shiftRight, 5)
        case .symbol("+"): (.add, 6)
        case .symbol("-"): (.subtract, 6)
        case .symbol("*"): (.multiply, 7)
        case .symbol("/"): (.divide, 7)
        case .symbol("**"): (.power, 8)
        case .word:
            switch token.keyword {
            case "UNION": (.union, 1)
            case "INTERSECT": (.intersect, 1)
            case "MINUS": (.minus, 1)
            default: nil
            }
        default: nil
        }
    }

    /// Reads operands joined by operators that bind at least as strongly as `minimum`.
    ///
    /// A predicate in parentheses is returned as a predicate.
    mutating func operation(minimum: Int = 1) throws(PredicateError) -> Phrase {
        var left = try unary()
        while let (symbol, strength) = arithmeticOperator(), strength >= minimum {
            let leftValue = try expression(left)
            try advance()
            let outer = nesting
            try descend()
            let right = try operation(minimum: symbol == .power ? strength : strength + 1)
            nesting = outer
            let height = max(left.height, right.height) + 1
            try checkDepth(height)
            left = Phrase(
                content: .expression(.arithmetic(symbol, leftValue, try expression(right))),
                height: height, start: left.start)
        }
        return left
    }

    private mutating func unary() throws(PredicateError) -> Phrase {
        guard token.isSymbol("-") || token.isSymbol("~") else { return try postfix() }
        let start = token.span.offset
        let outer = nesting
        var signs: [Bool] = []
        while token.isSymbol("-") || token.isSymbol("~") {
            signs.append(token.isSymbol("-"))
            try advance()
            try descend()
        }
        // The least integer has no positive counterpart.
        if signs.last == true, token.kind == .integer(Int64.min.magnitude) {
            var phrase = try postfix(of: leastInteger())
            signs.removeLast()
            phrase.start = start
            nesting = outer
            return try signed(phrase, signs, from: start)
        }
        let phrase = try postfix()
        nesting = outer
        return try signed(phrase, signs, from: start)
    }

    private mutating func leastInteger() throws(PredicateError) -> Phrase {
        let start = token.span.offset
        try advance()
        return Phrase(
            content: .expression(.constant(.integer(.min))), height: 1, start: start)
    }

    private func signed(
        _ phrase: Phrase, _ signs: [Bool], from start: Int
    ) throws(PredicateError) -> Phrase {
        guard !signs.isEmpty else { return phrase }
        var value = try expression(phrase)
        var height = phrase.height
        for isMinus in signs.reversed() {
            if isMinus, let negated = value.literal?.negated {
                value = .constant(negated)
            } else {
                value = isMinus ? .negative(value) : .complement(value)
                height += 1
            }
        }
        try checkDepth(height)
        return Phrase(content: .expression(value), height: height, start: start)
    }

    private mutating func postfix() throws(PredicateError) -> Phrase {
        try postfix(of: try atom())
    }

    /// Reads any `.name`, `.@count` and `[index]` after a phrase.
    private mutating func postfix(of base: Phrase) throws(PredicateError) -> Phrase {
        guard token.isSymbol(".") || token.isSymbol("[") else { return base }
        let value = try expression(base)
        var components: [RecordPredicate.RecordPath.Component] = []
        var height = base.height
        while true {
            if try take(".") {
                components.append(contentsOf: try member())
            } else if token.isSymbol("[") {
                let (component, inner) = try index()
                components.append(component)
                height = max(height, inner + 1)
            } else {
                break
            }
        }
        try checkDepth(height + 1)
        let path = RecordPredicate.RecordPath(components, span: span(from: base.start))
        let result: Expression
        if case .path(let start) = value {
            result = .path(
                RecordPredicate.RecordPath(start.components + components, span: path.span))
        } else {
            result = .member(of: value, path)
        }
        return Phrase(content: .expression(result), height: height + 1, start: base.start)
    }

    /// Reads the member after a point.
    private mutating func member() throws(PredicateError) -> [RecordPredicate.RecordPath.Component]
    {
        switch token.kind {
        case .word(let word), .key(let word):
            try advance()
            return [.member(word)]
        case .at(let word):
            if let meant = FormatWords.operatorMeant(by: word) {
                throw unexpected(
                    "@\(word) is not an operator", expected: "@count, @sum, @avg, @min, @max …",
                    hint: "@\(meant)")
            }
            try advance()
            return [Self.collectionComponent(word)]
        case .variable(let name):
            try advance()
            return [.variableMember(name)]
        case .argument(.key): return try keyComponents()
        default:
            throw unexpected("a name must follow the dot", expected: "a field or @operator")
        }
    }

    static func collectionComponent(_ word: String) -> RecordPredicate.RecordPath.Component {
        RecordPredicate.CollectionOperator(rawValue: word).map { .collection($0) }
            ?? .member("@\(word)")
    }

    /// Reads `[index]`.
    ///
    /// The second value is the height of the index expression.
    private mutating func index() throws(PredicateError) -> (
        RecordPredicate.RecordPath.Component, Int
    ) {
        try advance()
        let outer = nesting
        try descend()
        let component: RecordPredicate.RecordPath.Component
        var height = 0
        switch token.keyword {
        case "FIRST": component = .first
        case "LAST": component = .last
        case "SIZE": component = .size
        default:
            if try take("*") {
                try expect("]", "the index is not closed")
                nesting = outer
                return (.every, 1)
            }
            let phrase = try operation()
            height = phrase.height
            component = .element(try expression(phrase))
            try expect("]", "the index is not closed")
            nesting = outer
            return (component, height)
        }
        try advance()
        try expect("]", "the index is not closed")
        nesting = outer
        return (component, height)
    }
}
