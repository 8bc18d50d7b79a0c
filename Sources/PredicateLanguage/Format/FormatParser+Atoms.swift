import RelayModel

extension FormatParser {
    /// Reads the smallest unit: a constant, a key, a variable, a list, a call, or parentheses.
    mutating func atom() throws(PredicateError) -> Phrase {
        let start = token.span.offset
        switch token.kind {
        case .integer(let number):
            guard let value = Int64(exactly: number) else {
                throw unexpected(
                    "the integer does not fit in 64 bits",
                    expected: "-9223372036854775808 to 9223372036854775807")
            }
            return try constant(.integer(value))
        case .double(let number): return try constant(.double(number))
        case .string(let text): return try constant(.string(text))
        case .key(let name): return try path([.member(name)])
        case .at(let word): return try path([Self.collectionComponent(word)])
        case .variable(let name): return try variable(name)
        case .position(let index): return try positional(index)
        case .argument(.key):
            let components = try keyComponents()
            return Phrase(
                content: .expression(
                    .path(RecordPredicate.RecordPath(components, span: span(from: start)))),
                height: 1, start: start)
        case .argument(let conversion): return try argument(conversion)
        case .symbol("("): return try parenthesised()
        case .symbol("{"): return try list()
        case .word: return try word()
        case .end, .symbol:
            throw unexpected("a value is missing", expected: "a field, a constant or %@")
        }
    }

    private mutating func constant(_ value: FieldValue) throws(PredicateError) -> Phrase {
        let start = token.span.offset
        try advance()
        return Phrase(content: .expression(.constant(value)), height: 1, start: start)
    }

    private mutating func path(
        _ components: [RecordPredicate.RecordPath.Component]
    ) throws(PredicateError) -> Phrase {
        let span = token.span
        try advance()
        return Phrase(
            content: .expression(.path(RecordPredicate.RecordPath(components, span: span))),
            height: 1, start: span.offset)
    }

    private mutating func variable(_ name: String) throws(PredicateError) -> Phrase {
        let start = token.span.offset
        try advance()
        guard try take(":=") else {
            return Phrase(content: .expression(.variable(name)), height: 1, start: start)
        }
        let outer = nesting
        try descend()
        let phrase = try operation()
        nesting = outer
        try checkDepth(phrase.height + 1)
        return Phrase(
            content: .expression(.assignment(name, try expression(phrase))),
            height: phrase.height + 1, start: start)
    }

    private mutating func parenthesised() throws(PredicateError) -> Phrase {
        let start = token.span.offset
        let outer = nesting
        try advance()
        try descend()
        if token.isSymbol(")") {
            throw unexpected("the parentheses are empty", expected: "a predicate or an expression")
        }
        var phrase = try disjunction()
        guard try take(")") else {
            throw unexpected(
                "the parenthesis is not closed", expected: "`)`",
                hint: token.isSymbol(",") ? ForeignWords.hintForList : nil)
        }
        nesting = outer
        phrase.start = start
        return phrase
    }

    private mutating func list() throws(PredicateError) -> Phrase {
        let start = token.span.offset
        let outer = nesting
        try advance()
        try descend()
        var elements: [Expression] = []
        var height = 0
        while !token.isSymbol("}") {
            if !elements.isEmpty { try expect(",", "the list is not closed") }
            let phrase = try operation()
            elements.append(try expression(phrase))
            height = max(height, phrase.height)
            guard elements.count <= Limits.maximumPredicateListElements else {
                throw unexpected(
                    "the list has more than \(Limits.maximumPredicateListElements) elements",
                    expected: "at most \(Limits.maximumPredicateListElements) elements")
            }
        }
        try advance()
        nesting = outer
        try checkDepth(height + 1)
        let values = elements.compactMap(\.literal)
        let content: Expression =
            values.count == elements.count ? .constant(.list(values)) : .list(elements)
        return Phrase(content: .expression(content), height: height + 1, start: start)
    }

    /// Reads a word: a constant, a special form, a call, or a key.
    private mutating func word() throws(PredicateError) -> Phrase {
        guard case .word(let word) = token.kind else {
            throw unexpected("a word is missing", expected: "a field, or a word after #")
        }
        let start = token.span.offset
        switch token.keyword {
        case "TRUE", "YES": return try constant(.bool(true))
        case "FALSE", "NO": return try constant(.bool(false))
        case "NULL", "NIL": return try constant(.null)
        case "SELF": return try path([])
        case "ANYKEY":
            try advance()
            return Phrase(content: .expression(.anyKey), height: 1, start: start)
        case "TRUEPREDICATE", "FALSEPREDICATE":
            throw unexpected(
                "a predicate is used where a value is needed", expected: "an expression")
        case "CAST", "TERNARY", "SUBQUERY", "FUNCTION", "FETCH": return try specialForm()
        case let keyword? where FormatWords.reserved.contains(keyword):
            throw unexpected(
                "\(word) is a reserved word", expected: "a field, a constant or %@",
                hint: "write a field of that name as #\(word)")
        default: break
        }
        try advance()
        if token.isSymbol("(") || token.isSymbol(":") {
            return try call(word, from: start)
        }
        return Phrase(
            content: .expression(
                .path(
                    RecordPredicate.RecordPath(
                        [.member(word)],
                        span: SourceSpan(offset: start, length: word.utf8.count)))),
            height: 1, start: start)
    }

    // MARK: Arguments

    /// Consumes the next argument.
    private mutating func nextArgument() throws(PredicateError) -> FieldValue {
        guard consumed < arguments.count else {
            throw unexpected(
                "there are fewer arguments than placeholders",
                expected: consumed == 0
                    ? "a value for each placeholder" : "at least \(consumed + 1) arguments",
                hint: "placeholders take their values, in order, from the list of "
                    + "arguments; or write the value itself: 3, \"text\", YES")
        }
        consumed += 1
        return arguments[consumed - 1]
    }

    private mutating func positional(_ index: Int) throws(PredicateError) -> Phrase {
        guard index < arguments.count else {
            // Without arguments, `$0` is a variable like any other, which is bound later.
            if arguments.isEmpty { return try variable(String(index)) }
            throw unexpected(
                "there is no argument $\(index)", expected: "$0 to $\(arguments.count - 1)")
        }
        namesPositions = true
        try room.name(index, arguments[index], at: token.span)
        return try constant(try checked(arguments[index]))
    }

    /// Returns the argument, or throws if it is a collection with too many elements.
    private func checked(_ value: FieldValue) throws(PredicateError) -> FieldValue {
        let count: Int
        switch value {
        case .list(let values): count = values.count
        case .set(let values): count = values.count
        case .map(let members): count = members.count
        default: count = 0
        }
        guard count <= Limits.maximumPredicateListElements else {
            throw unexpected(
                "the list has more than \(Limits.maximumPredicateListElements) elements",
                expected: "at most \(Limits.maximumPredicateListElements) elements")
        }
        return value
    }

    private mutating func argument(
        _ conversion: FormatToken.Conversion
    ) throws(PredicateError) -> Phrase {
        let value = try checked(try nextArgument())
        switch (conversion, value) {
        case (.value, _), (.integer, .integer), (.double, .double), (.text, .string): break
        case (.integer, .double(let number)):
            guard let whole = Int64(exactly: number.rounded(.towardZero)) else {
                throw unexpected(
                    "the argument does not fit in an integer", expected: "a 64-bit integer")
            }
            return try constant(.integer(whole))
        case (.integer, .bool(let flag)): return try constant(.integer(flag ? 1 : 0))
        case (.double, .integer(let number)): return try constant(.double(Double(number)))
        case (.character, .integer(let code)):
            guard let scalar = UInt32(exactly: code).flatMap(Unicode.Scalar.init) else {
                throw unexpected(
                    "the argument is not a character code",
                    expected: "the code of a Unicode character")
            }
            return try constant(.string(String(scalar)))
        case (.character, .string): break
        default:
            throw unexpected(
                "the argument is \(value.kind)",
                expected: conversion == .integer || conversion == .double
                    ? "a number" : "a text", hint: "%@ takes any value")
        }
        return try constant(value)
    }

    /// Consumes a `%K` and its argument: a path of keys that are separated by points.
    mutating func keyComponents() throws(PredicateError)
        -> [RecordPredicate.RecordPath.Component]
    {
        guard case .string(let text) = try nextArgument(), !text.isEmpty else {
            throw unexpected("the argument of %K must be a key", expected: "a text")
        }
        var parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard !parts.contains("") else {
            throw unexpected(
                "the argument of %K has an empty key between dots",
                expected: "names joined by single dots")
        }
        try advance()
        if parts[0] == "self" || parts[0] == "SELF" { parts.removeFirst() }
        return parts.map { part in
            part.first == "@"
                ? Self.collectionComponent(String(part.dropFirst()))
                : .member(String(part))
        }
    }
}
