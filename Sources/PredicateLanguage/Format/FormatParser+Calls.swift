import RelayModel

extension FormatParser {
    /// Reads `CAST(…)`, `TERNARY(…)` or `SUBQUERY(…)`.
    ///
    /// Throws for `FUNCTION` and `FETCH`.
    mutating func specialForm() throws(PredicateError) -> Phrase {
        let start = token.span.offset
        let keyword = token.keyword
        if keyword == "FUNCTION" {
            throw unexpected(
                "FUNCTION calls arbitrary methods, which a saved predicate must not do",
                expected: "a built-in function such as sum: or length:")
        }
        if keyword == "FETCH" {
            throw unexpected(
                "FETCH reads a database, which a saved predicate cannot do",
                expected: "a field or constant")
        }
        try advance()
        try expect("(", "\(keyword ?? "") needs its arguments in parentheses")
        let outer = nesting
        try descend()
        let (content, height) =
            switch keyword {
            case "CAST": try cast()
            case "TERNARY": try conditional()
            default: try subquery()
            }
        try expect(")", "the parenthesis is not closed")
        nesting = outer
        try checkDepth(height + 1)
        return Phrase(content: .expression(content), height: height + 1, start: start)
    }

    private mutating func cast() throws(PredicateError) -> (Expression, Int) {
        let start = token.span.offset
        let phrase = try operation()
        let value = try expression(phrase)
        let valueSpan = span(from: start)
        try expect(",", "CAST needs a type")
        let name: String
        switch token.kind {
        case .string(let text): name = text
        case .argument(.value) where consumed < arguments.count:
            guard case .string(let text) = arguments[consumed] else { fallthrough }
            consumed += 1
            name = text
        default: throw unexpected("CAST needs the name of a type", expected: "\"NSDate\"")
        }
        guard let type = RecordPredicate.CastType(rawValue: name) else {
            let names = RecordPredicate.CastType.allCases.map(\.rawValue)
            throw unexpected(
                "the type \(name.prefix(40)) is unknown",
                expected: names.joined(separator: ", "))
        }
        try advance()
        guard let literal = value.literal else { return (.cast(value, type), phrase.height) }
        if type == .date, let moment = exactDate(valueSpan) {
            return (.constant(.timestamp(moment)), 1)
        }
        do {
            return (.constant(try literal.cast(to: type)), 1)
        } catch {
            throw PredicateError(
                .parse, error.reason, at: valueSpan, found: literal.kind,
                hint: type == .date
                    ? "write a date as CAST(seconds since 2001, \"NSDate\"), or as %@ with an "
                        + "argument {\"$date\": seconds since 1970}"
                    : nil)
        }
    }

    /// Returns the date of a decimal literal in seconds since 2001.
    ///
    /// It is exact to the nanosecond, which a double could not be.
    private func exactDate(_ span: SourceSpan) -> Timestamp? {
        let text = String(
            decoding: lexer.bytes[span.offset..<span.offset + span.length], as: UTF8.self)
        return Timestamp(decimalSecondsSince2001: text)
    }

    private mutating func conditional() throws(PredicateError) -> (Expression, Int) {
        let condition = try disjunction()
        let test = try node(condition)
        try expect(",", "TERNARY needs three arguments")
        let first = try operation()
        try expect(",", "TERNARY needs three arguments")
        let second = try operation()
        return (
            .conditional(test, try expression(first), try expression(second)),
            max(condition.height, first.height, second.height)
        )
    }

    private mutating func subquery() throws(PredicateError) -> (Expression, Int) {
        let list = try operation()
        try expect(",", "SUBQUERY needs a list, a variable and a predicate")
        guard case .variable(let name) = token.kind else {
            throw unexpected("SUBQUERY needs a variable", expected: "$name")
        }
        try advance()
        try expect(",", "SUBQUERY needs a list, a variable and a predicate")
        let condition = try disjunction()
        return (
            .subquery(try expression(list), variable: name, try node(condition)),
            max(list.height, condition.height)
        )
    }

    /// Reads the rest of `name(…)` or `name:part:(…)` after its first word.
    mutating func call(_ word: String, from start: Int) throws(PredicateError) -> Phrase {
        var name = word
        while try take(":") {
            name += ":"
            if case .word(let part) = token.kind {
                name += part
                try advance()
                guard token.isSymbol(":") else {
                    throw unexpected("a function's name is not complete", expected: "`:`")
                }
            }
        }
        let nameSpan = span(from: start)
        let outer = nesting
        try expect("(", "a function needs its arguments in parentheses")
        try descend()
        var values: [Expression] = []
        var height = 0
        while !token.isSymbol(")") {
            if !values.isEmpty { try expect(",", "the arguments are not closed") }
            let phrase = try operation()
            values.append(try expression(phrase))
            height = max(height, phrase.height)
            guard values.count <= Limits.maximumPredicateListElements else {
                throw unexpected(
                    "too many arguments", expected: "as many arguments as the function takes")
            }
        }
        try advance()
        nesting = outer
        try checkDepth(height + 1)
        let content = try Self.function(name, values, at: nameSpan)
        return Phrase(content: .expression(content), height: height + 1, start: start)
    }

    /// Returns the expression for a call of the function `name`.
    private static func function(
        _ name: String, _ values: [Expression], at span: SourceSpan
    ) throws(PredicateError) -> Expression {
        let given = name.hasSuffix(":") || name == "now" ? name : name + ":"
        // Apple's own frameworks write the short name.
        let full = given == "tokenize:" ? "tokenize:using:" : given
        if full == "random:" || full == "randomn:" {
            throw PredicateError(
                .parse, "a saved predicate must not use random numbers", at: span,
                found: "`\(name)`", expected: "a function that depends only on the record")
        }
        if let symbol = operators[full] {
            try check(name, values.count, 2...2, at: span)
            return .arithmetic(symbol, values[0], values[1])
        }
        if full == "onesComplement:" {
            try check(name, values.count, 1...1, at: span)
            return .complement(values[0])
        }
        guard let function = RecordPredicate.Function(rawValue: full == "now:" ? "now" : full)
        else {
            throw PredicateError(
                .parse, "the function \(name.prefix(60)) is unknown", at: span,
                found: "`\(name.prefix(60))`", expected: "a built-in function",
                hint: (nearest(to: full) ?? meantFunctions[full.lowercased()])
                    .map { "did you mean \($0)?" })
        }
        try check(name, values.count, function.arity, at: span)
        return .call(function, values)
    }

    private static func check(
        _ name: String, _ count: Int, _ allowed: ClosedRange<Int>, at span: SourceSpan
    ) throws(PredicateError) {
        guard !allowed.contains(count) else { return }
        let wanted =
            allowed.lowerBound == allowed.upperBound
            ? "\(allowed.lowerBound)" : "at least \(allowed.lowerBound)"
        throw PredicateError(
            .parse, "the function \(name) takes \(wanted) arguments, not \(count)", at: span,
            found: "\(count) arguments", expected: wanted)
    }

    /// Names of functions in other languages, with the hint at their equivalent here.
    private static let meantFunctions: [String: String] = [
        "now:": "now()", "getdate:": "now()", "sysdate:": "now()", "lower:": "lowercase:",
        "lcase:": "lowercase:", "tolower:": "lowercase:", "tolowercase:": "lowercase:",
        "upper:": "uppercase:", "ucase:": "uppercase:", "toupper:": "uppercase:",
        "touppercase:": "uppercase:", "len:": "length:", "strlen:": "length:",
        "char_length:": "length:", "character_length:": "length:", "round:": "floor:",
        "avg:": "average:", "power:": "raise:toPower:", "pow:": "raise:toPower:",
    ]

    /// Hints for binary operators of other languages, by the sign as it appears in error messages.
    static let meantBySigns: [String: String] = [
        "`~`": "to match a pattern, use LIKE or MATCHES", "`!`": "did you mean !=?",
    ]

    /// The functions that are another notation of an operator.
    private static let operators: [String: Arithmetic] = [
        "add:to:": .add, "multiply:by:": .multiply, "divide:by:": .divide,
        "from:subtract:": .subtract, "raise:toPower:": .power, "bitwiseAnd:with:": .bitAnd,
        "bitwiseOr:with:": .bitOr, "bitwiseXor:with:": .bitXor, "leftshift:by:": .shiftLeft,
        "rightshift:by:": .shiftRight,
    ]

    /// Returns the built-in function whose name differs only in case.
    private static func nearest(to name: String) -> String? {
        let names = RecordPredicate.Function.allCases.map(\.rawValue) + operators.keys
        let folded = name.lowercased()
        return names.first { $0.lowercased() == folded }
    }
}

extension RecordPredicate.Function {
    /// The number of arguments that the function takes.
    var arity: ClosedRange<Int> {
        switch self {
        case .now: 0...0
        case .sum, .count, .minimum, .maximum, .average, .median, .mode, .standardDeviation:
            1...Limits.maximumPredicateListElements
        case .geoPolygon: 1...Limits.maximumPredicateListElements
        case .modulus, .distance, .tokenize, .geoBox, .geoCircle: 2...2
        case .squareRoot, .logarithm, .naturalLogarithm, .exponential, .floor, .ceiling,
            .absolute, .truncate, .uppercase, .lowercase, .noIndex, .length:
            1...1
        }
    }
}
