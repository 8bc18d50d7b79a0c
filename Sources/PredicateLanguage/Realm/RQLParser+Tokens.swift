import RelayModel

/// Access to the tokens, and the errors of the parser.
extension RQLParser {
    var current: RQLToken { tokens[position] }

    /// The end of the previous token.
    var lastEnd: Int { position == 0 ? 0 : tokens[position - 1].end }

    /// Advances to the next token.
    ///
    /// At the last token it does nothing.
    mutating func advance() {
        if position < tokens.count - 1 { position += 1 }
    }

    mutating func expect(_ symbol: RQLSymbol) throws(PredicateError) {
        guard current.kind == .symbol(symbol) else {
            throw unexpected(expected: symbol.rawValue)
        }
        advance()
    }

    /// Throws if anything follows the query.
    func expectEnd() throws(PredicateError) {
        guard current.kind == .end else {
            throw unexpected(
                expected: "AND, OR, SORT, DISTINCT, LIMIT or the end of the query")
        }
    }

    /// Enters one more level of nesting.
    ///
    /// The caller must leave it again.
    mutating func descend() throws(PredicateError) {
        depth += 1
        guard depth <= Limits.maximumPredicateDepth else { throw tooDeep(at: span(of: current)) }
    }

    func tooDeep(at span: SourceSpan) -> PredicateError {
        PredicateError(
            .parse, "the query is nested deeper than \(Limits.maximumPredicateDepth) levels",
            at: span, expected: "at most \(Limits.maximumPredicateDepth) levels")
    }

    func span(of token: RQLToken) -> SourceSpan {
        SourceSpan(offset: token.offset, length: token.length)
    }

    /// Returns the text of a token, cut to the length that an error can show.
    func spelling(of token: RQLToken) -> String {
        let bytes = text.utf8.dropFirst(token.offset).prefix(token.length)
        return token.length > 60
            ? String(decoding: bytes.prefix(60), as: UTF8.self) + "…"
            : String(decoding: bytes, as: UTF8.self)
    }

    func unexpected(expected: String, hint: String? = nil) -> PredicateError {
        unexpected(current, expected: expected, hint: hint)
    }

    func unexpected(_ token: RQLToken, expected: String, hint: String? = nil) -> PredicateError {
        let found = token.kind == .end ? "the end of the query" : spelling(of: token)
        return PredicateError(
            .parse, "expected \(expected), found \(found)", at: span(of: token), found: found,
            expected: expected,
            hint: hint ?? Self.hint(for: token) ?? hintForEquals(before: token))
    }

    /// Returns a hint for an extra equals sign, as in `===`.
    private func hintForEquals(before token: RQLToken) -> String? {
        guard token.kind == .symbol(.singleEqual), position > 0, lastEnd == token.offset else {
            return nil
        }
        switch tokens[position - 1].kind {
        case .symbol(.equal): return "write == for equality"
        case .symbol(.notEqual): return "did you mean !=?"
        default: return nil
        }
    }

    /// A hint for a missing operator: a word of SQL, or a misspelt keyword before this token.
    var hintForOperator: String? {
        switch current.kind {
        case .keyword(.not): return "write NOT before the comparison: NOT a IN {1, 2}"
        case .name(let name):
            let before = position > 0 ? Self.hint(for: tokens[position - 1]) : nil
            return before ?? Self.hint(for: current) ?? Self.meant(by: name)
        default: return position > 0 ? Self.hint(for: tokens[position - 1]) : nil
        }
    }

    /// Returns a hint for a word at a place where an operator is missing.
    private static func meant(by name: String) -> String? {
        let word = name.uppercased()
        return switch word {
        case "IS": "to find records without a value, write == null; with a value, != null"
        case "MATCHES", "REGEXP", "RLIKE", "SIMILAR": "to match a pattern, use LIKE"
        default:
            ForeignWords.operators[word]
                ?? NearestWord.to(word, among: comparators).map { "did you mean \($0)?" }
        }
    }

    /// The words that may stand between two values.
    private static let comparators = [
        "IN", "BETWEEN", "BEGINSWITH", "ENDSWITH", "CONTAINS", "LIKE", "GEOWITHIN",
    ]

    private static func hint(for token: RQLToken) -> String? {
        switch token.kind {
        case .symbol(.openBracket): "write a list of values in braces: {1, 2}"
        case .name(let name) where RQLKeyword(spelling: name.uppercased()) != nil:
            "this keyword is spelt differently: write \(name.uppercased())"
        default: nil
        }
    }
}

extension RQLToken {
    /// Whether `[c]` may follow the token.
    var takesCaseOption: Bool {
        switch kind {
        case .symbol(.equal), .symbol(.singleEqual), .symbol(.notEqual), .symbol(.lessGreater),
            .keyword(.isIn), .keyword(.beginsWith), .keyword(.endsWith), .keyword(.contains),
            .keyword(.like):
            true
        default: false
        }
    }
}
