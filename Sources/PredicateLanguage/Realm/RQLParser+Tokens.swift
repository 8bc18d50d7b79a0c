import RelayModel

/// How the parser walks the tokens, and its errors.
extension RQLParser {
    var current: RQLToken { tokens[position] }

    /// The end of the token before the current one.
    var lastEnd: Int { position == 0 ? 0 : tokens[position - 1].end }

    /// Goes on to the next token; the last one stays.
    mutating func advance() {
        if position < tokens.count - 1 { position += 1 }
    }

    mutating func expect(_ symbol: RQLSymbol) throws(PredicateError) {
        guard current.kind == .symbol(symbol) else {
            throw unexpected(expected: symbol.rawValue)
        }
        advance()
    }

    /// Refuses anything after the query.
    func expectEnd() throws(PredicateError) {
        guard current.kind == .end else {
            throw unexpected(
                expected: "AND, OR, SORT, DISTINCT, LIMIT or the end of the query")
        }
    }

    /// Enters one more level; the caller leaves it again.
    mutating func descend() throws(PredicateError) {
        depth += 1
        guard depth <= Limits.maximumPredicateDepth else { throw tooDeep(at: span(of: current)) }
    }

    func tooDeep(at span: SourceSpan) -> PredicateError {
        PredicateError(
            .parse, "the query is nested deeper than \(Limits.maximumPredicateDepth) levels",
            at: span, expected: "\(Limits.maximumPredicateDepth) levels at the most")
    }

    func span(of token: RQLToken) -> SourceSpan {
        SourceSpan(offset: token.offset, length: token.length)
    }

    /// The text of a token, cut to what an error can show.
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

    /// What was meant by a sign of equality too many, as in `===`.
    private func hintForEquals(before token: RQLToken) -> String? {
        guard token.kind == .symbol(.singleEqual), position > 0, lastEnd == token.offset else {
            return nil
        }
        switch tokens[position - 1].kind {
        case .symbol(.equal): return "equality is written =="
        case .symbol(.notEqual): return "did you mean !=?"
        default: return nil
        }
    }

    /// What may have been meant where an operator is missing: by who writes SQL, or by a word
    /// before that was to be a keyword.
    var hintForOperator: String? {
        switch current.kind {
        case .keyword(.not): return "NOT stands before the comparison: NOT a IN {1, 2}"
        case .name(let name):
            let before = position > 0 ? Self.hint(for: tokens[position - 1]) : nil
            return before ?? Self.hint(for: current) ?? Self.meant(by: name)
        default: return position > 0 ? Self.hint(for: tokens[position - 1]) : nil
        }
    }

    /// What a word may have been meant as that stands where an operator is missing.
    private static func meant(by name: String) -> String? {
        let word = name.uppercased()
        return switch word {
        case "IS": "a missing value is found by == null, one that is there by != null"
        case "MATCHES", "REGEXP", "RLIKE", "SIMILAR": "a pattern is compared with LIKE"
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
        case .symbol(.openBracket): "a list of values is written in braces: {1, 2}"
        case .name(let name) where RQLKeyword(spelling: name.uppercased()) != nil:
            "keywords have their own spellings: write \(name.uppercased())"
        default: nil
        }
    }
}

extension RQLToken {
    /// Whether `[c]` may follow.
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
