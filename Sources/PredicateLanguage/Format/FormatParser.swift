public import RelayModel

extension RecordPredicate {
    /// Creates a predicate from an NSPredicate format.
    ///
    /// In addition to Apple's grammar it accepts what ``canonicalText`` writes: `#"any key"`, the
    /// rule set after a colon in the option brackets (`==[c:realm]`), a quantifier before the right
    /// side under Realm's rules, and `CAST` of constants to more types.
    ///
    /// Arguments are the values of `%@`, `%K` and similar placeholders, in the order of the text.
    /// `$0`, `$1` … refer to them by position instead.
    ///
    /// - Throws: ``PredicateError`` of the stage `parse`.
    public init(format: String, arguments: [FieldValue] = []) throws(PredicateError) {
        guard format.utf8.count <= Limits.maximumPredicateBytes else {
            throw PredicateError(
                .parse, "the text is longer than \(Limits.maximumPredicateBytes) bytes",
                at: SourceSpan(offset: Limits.maximumPredicateBytes, length: 0),
                found: "\(format.utf8.count) bytes",
                expected: "at most \(Limits.maximumPredicateBytes) bytes")
        }
        var parser = try FormatParser(format, arguments: arguments)
        self.init(try parser.format())
    }
}

/// A parser for NSPredicate formats, by precedence climbing.
///
/// A `(` may open a predicate or an expression. Trying both would double the cost at each level. So
/// the parser reads everything as a ``Phrase``, which turns out to be one or the other.
struct FormatParser {
    typealias Node = RecordPredicate.Node
    typealias Expression = RecordPredicate.Expression

    /// A part of the text that has been read: a predicate or an expression, with the height of its
    /// tree.
    struct Phrase {
        enum Content {
            case node(Node)
            case expression(Expression)
        }
        var content: Content
        var height: Int
        var start: Int
    }

    var lexer: FormatLexer
    /// The current token.
    var token: FormatToken
    /// The end of the previous token.
    var previousEnd = 0
    let arguments: [FieldValue]
    /// The number of arguments that placeholders have consumed in order.
    var consumed = 0
    /// Whether the text refers to an argument by its position.
    var namesPositions = false
    /// The remaining room for the canonical text.
    var room = TextRoom()
    /// The depth of nesting at the current token.
    var nesting = 0

    init(_ text: String, arguments: [FieldValue]) throws(PredicateError) {
        var lexer = FormatLexer(text)
        token = try lexer.next()
        self.lexer = lexer
        self.arguments = arguments
    }

    /// Reads the whole text.
    mutating func format() throws(PredicateError) -> Node {
        guard token.kind != .end else {
            throw unexpected("the text is empty", expected: "a comparison, or TRUEPREDICATE")
        }
        let phrase = try disjunction()
        let node = try node(phrase)
        guard token.kind == .end else {
            throw unexpected(
                "there is more text after the end of the predicate", expected: "AND, OR or the end",
                hint: hintForRest)
        }
        if consumed < arguments.count, !namesPositions {
            throw PredicateError(
                .parse, "there are more arguments than placeholders",
                at: SourceSpan(offset: lexer.bytes.count, length: 0),
                found: "\(arguments.count) arguments", expected: "\(consumed) arguments")
        }
        return node
    }

    // MARK: Tokens

    mutating func advance() throws(PredicateError) {
        previousEnd = token.span.offset + token.span.length
        token = try lexer.next()
    }

    /// Consumes `symbol` if it comes next.
    mutating func take(_ symbol: String) throws(PredicateError) -> Bool {
        guard token.isSymbol(symbol) else { return false }
        try advance()
        return true
    }

    /// Consumes `symbol`.
    ///
    /// - Throws: ``PredicateError`` if something else comes next.
    mutating func expect(_ symbol: String, _ reason: String) throws(PredicateError) {
        guard try take(symbol) else { throw unexpected(reason, expected: "`\(symbol)`") }
    }

    func unexpected(
        _ reason: String, expected: String? = nil, hint: String? = nil
    ) -> PredicateError {
        PredicateError(
            .parse, reason, at: token.span, found: token.found, expected: expected, hint: hint)
    }

    /// Returns the span from `start` to the end of the last consumed token.
    func span(from start: Int) -> SourceSpan {
        SourceSpan(offset: start, length: max(previousEnd - start, 0))
    }

    // MARK: Depth

    /// Enters one more level of nesting.
    mutating func descend() throws(PredicateError) {
        nesting += 1
        try checkDepth(nesting)
    }

    /// Throws if a tree or a text is too deep to be walked by recursion.
    func checkDepth(_ depth: Int) throws(PredicateError) {
        guard depth <= Limits.maximumPredicateDepth else {
            throw unexpected(
                "nested deeper than \(Limits.maximumPredicateDepth) levels",
                expected: "at most \(Limits.maximumPredicateDepth) levels",
                hint: "a long chain of AND or OR without parentheses is not nested")
        }
    }

    // MARK: Phrases

    func node(_ phrase: Phrase) throws(PredicateError) -> Node {
        switch phrase.content {
        case .node(let node): return node
        case .expression:
            throw PredicateError(
                .parse, "an expression alone is not a predicate",
                at: token.span, found: token.found,
                expected: "a comparison operator such as == or CONTAINS",
                hint: hintForOperator)
        }
    }

    /// A hint for the word at a place where an operator is missing.
    private var hintForOperator: String {
        guard case .word(let word) = token.kind else {
            return Self.meantBySigns[token.found] ?? "compare it with something: … == YES"
        }
        if let hint = ForeignWords.operators[word.uppercased()] { return hint }
        return switch word.uppercased() {
        case "NOT": "write NOT before the comparison: NOT a IN {1, 2}"
        case "IS": hintForIs
        default:
            // A correctly spelt word here means that a comparison is missing, as in `a AND b`.
            if let meant = NearestWord.to(word, among: Self.wordsAfterValue),
                meant != word.uppercased()
            {
                "did you mean \(meant)?"
            } else {
                "compare it with something: … == YES"
            }
        }
    }

    /// A hint for text after the end of the predicate.
    private var hintForRest: String? {
        if ["ORDER", "SORT", "LIMIT", "GROUP"].contains(token.keyword) {
            return "a condition only selects records; it cannot set their order or number"
        }
        let isBehindText =
            previousEnd > 0 && token.span.offset == previousEnd
            && "'\"".utf8.contains(lexer.bytes[previousEnd - 1])
        return isBehindText
            ? #"inside a text, write a quotation mark as \' or \""# : nil
    }

    /// A hint for SQL's `IS`, which depends on the next word.
    private var hintForIs: String {
        var rest = lexer
        return switch (try? rest.next())?.keyword {
        case "NOT": "to find records that have a value, write != NULL"
        case "NULL", "NIL": "to find records without a value, write == NULL"
        default: "write == for equality"
        }
    }

    /// The words that may follow a value.
    private static let wordsAfterValue = (comparatorWords.keys + ["AND", "OR"]).sorted()

    func expression(_ phrase: Phrase) throws(PredicateError) -> Expression {
        switch phrase.content {
        case .expression(let expression): return expression
        case .node:
            throw PredicateError(
                .parse, "a predicate is used where a value is needed",
                at: span(from: phrase.start), expected: "an expression",
                hint: "TERNARY(predicate, YES, NO) turns it into a value")
        }
    }
}

extension FormatParser {
    // MARK: Predicates

    mutating func disjunction() throws(PredicateError) -> Phrase {
        try chain(keyword: "OR", symbol: "||") { (parser) throws(PredicateError) in
            try parser.conjunction()
        } joining: {
            .or($0)
        }
    }

    private mutating func conjunction() throws(PredicateError) -> Phrase {
        try chain(keyword: "AND", symbol: "&&") { (parser) throws(PredicateError) in
            try parser.negation()
        } joining: {
            .and($0)
        }
    }

    /// Reads all operands that are joined by the same operator into one flat node.
    private mutating func chain(
        keyword: String, symbol: String,
        operand: (inout FormatParser) throws(PredicateError) -> Phrase,
        joining: ([Node]) -> Node
    ) throws(PredicateError) -> Phrase {
        let first = try operand(&self)
        guard token.keyword == keyword || token.isSymbol(symbol) else { return first }
        var nodes = [try node(first)]
        var height = first.height
        while token.keyword == keyword || token.isSymbol(symbol) {
            try advance()
            let next = try operand(&self)
            nodes.append(try node(next))
            height = max(height, next.height)
        }
        try checkDepth(height + 1)
        return Phrase(content: .node(joining(nodes)), height: height + 1, start: first.start)
    }

    private mutating func negation() throws(PredicateError) -> Phrase {
        guard token.keyword == "NOT" || token.isSymbol("!") else { return try comparison() }
        let start = token.span.offset
        let outer = nesting
        var count = 0
        while token.keyword == "NOT" || token.isSymbol("!") {
            try advance()
            try descend()
            count += 1
        }
        let phrase = try comparison()
        var node = try node(phrase)
        for _ in 0..<count { node = .not(node) }
        nesting = outer
        try checkDepth(phrase.height + count)
        return Phrase(content: .node(node), height: phrase.height + count, start: start)
    }

    /// Reads a comparison, a constant predicate, a predicate in parentheses, or a bare expression.
    private mutating func comparison() throws(PredicateError) -> Phrase {
        let start = token.span.offset
        if token.keyword == "TRUEPREDICATE" || token.keyword == "FALSEPREDICATE" {
            let isTrue = token.keyword == "TRUEPREDICATE"
            try advance()
            return Phrase(content: .node(.constant(isTrue)), height: 1, start: start)
        }
        let quantifier = try quantifier()
        let left = try operation()
        guard let comparator = comparator() else {
            if token.keyword == "UTI-CONFORMS-TO" {
                throw unexpected(
                    "UTI-CONFORMS-TO needs a registry of types, which a relay does not have",
                    expected: "UTI-EQUALS", hint: "UTI-EQUALS compares two type identifiers")
            }
            if quantifier != nil {
                throw unexpected(
                    "a comparison operator is missing", expected: "== != < <= > >= IN CONTAINS …")
            }
            return left
        }
        var comparison = RecordPredicate.Comparison(
            try expression(left), comparator, .record, quantifier: quantifier)
        comparison.leftSpan = span(from: left.start)
        try advance()
        try options(of: &comparison)
        if comparison.rules == .realm { comparison.rightQuantifier = try self.quantifier() }
        let right = try operation()
        comparison.right = try expression(right)
        comparison.rightSpan = span(from: right.start)
        if comparator == .between, token.keyword == "AND", let bound = comparison.right.literal,
            bound.elements == nil
        {
            throw PredicateError(
                .parse, "BETWEEN needs a list of two bounds", at: comparison.rightSpan,
                found: bound.kind, expected: "{lower, upper}", hint: "BETWEEN {1, 5}")
        }
        comparison.span = span(from: start)
        let height = max(left.height, right.height) + 1
        try checkDepth(height)
        let search = try comparison.tokenSearch(within: &room)
        let node = search ?? .comparison(comparison)
        return Phrase(content: .node(node), height: height, start: start)
    }

    private mutating func quantifier() throws(PredicateError) -> RecordPredicate.Quantifier? {
        let quantifier: RecordPredicate.Quantifier
        switch token.keyword {
        case "ANY", "SOME": quantifier = .any
        case "ALL": quantifier = .all
        case "NONE": quantifier = .none
        default: return nil
        }
        try advance()
        return quantifier
    }

    private func comparator() -> RecordPredicate.Comparator? {
        switch token.kind {
        case .symbol(let symbol): Self.comparators[symbol]
        case .word: token.keyword.flatMap { Self.comparatorWords[$0] }
        default: nil
        }
    }

    static let comparators: [String: RecordPredicate.Comparator] = [
        "=": .equal, "==": .equal, "!=": .notEqual, "<>": .notEqual, "<": .less,
        "<=": .lessOrEqual, "=<": .lessOrEqual, ">": .greater, ">=": .greaterOrEqual,
        "=>": .greaterOrEqual,
    ]
    static let comparatorWords: [String: RecordPredicate.Comparator] = [
        "BETWEEN": .between, "IN": .in, "CONTAINS": .contains, "BEGINSWITH": .beginsWith,
        "ENDSWITH": .endsWith, "LIKE": .like, "MATCHES": .matches, "TOKENMATCHES": .tokenMatches,
        "GEOWITHIN": .geoWithin, "UTI-EQUALS": .typeEquals,
    ]

    /// Reads options such as `[cd]`, `[c:realm]` or `[:realm]`, if there are any.
    private mutating func options(
        of comparison: inout RecordPredicate.Comparison
    ) throws(PredicateError) {
        guard token.isSymbol("[") else { return }
        let start = token.span.offset
        var index = start + 1
        while Self.isOptionByte(lexer.byte(index)) { index += 1 }
        guard lexer.byte(index) == UInt8(ascii: "]") else {
            throw optionFailure(from: start)
        }
        let text = String(decoding: lexer.bytes[(start + 1)..<index], as: UTF8.self)
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for letter in parts[0].lowercased() {
            switch letter {
            case "c": comparison.options.insert(.ignoringCase)
            case "d": comparison.options.insert(.ignoringDiacritics)
            case "n": comparison.options.insert(.normalized)
            case "l": comparison.options.insert(.localeAware)
            default: throw optionFailure(from: start)
            }
        }
        if parts.count == 2 {
            guard let rules = RecordPredicate.RuleSet(rawValue: String(parts[1])) else {
                throw optionFailure(from: start)
            }
            comparison.rules = rules
        }
        guard parts.count <= 2, !text.isEmpty else { throw optionFailure(from: start) }
        lexer.position = index + 1
        try advance()
    }

    private static func isOptionByte(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ":")
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private func optionFailure(from start: Int) -> PredicateError {
        lexer.failure(
            "unknown text options", from: start,
            expected: "one or more of the letters c, d, n and l: [cd]",
            hint: Self.isOptionByte(lexer.byte(start + 1)) ? nil : ForeignWords.hintForList)
    }
}
