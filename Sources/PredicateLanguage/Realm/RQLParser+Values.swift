import RelayModel

/// Parsing of constants, arguments, lists and parentheses.
extension RQLParser {
    /// Reads one operand without arithmetic, or a condition in parentheses.
    mutating func value() throws(PredicateError) -> Part {
        let start = current
        switch start.kind {
        case .symbol(.openParenthesis): return try parenthesised()
        case .keyword(.any), .keyword(.all), .keyword(.none): return .operand(try quantified())
        case .symbol(.openBrace): return .operand(try list())
        case .keyword(.subquery): return .operand(try subquery())
        default: break
        }
        if let constant = try constant() {
            return .operand(operand(constant, from: start))
        }
        return .operand(try path())
    }

    private mutating func parenthesised() throws(PredicateError) -> Part {
        let start = current
        advance()
        try descend()
        defer { depth -= 1 }
        let part = try disjunction()
        if current.kind == .symbol(.comma) {
            throw unexpected(
                expected: RQLSymbol.closeParenthesis.rawValue, hint: ForeignWords.hintForList)
        }
        try expect(.closeParenthesis)
        guard case .operand(var inner) = part else { return part }
        inner.shape = .compound
        inner.depth += 1
        inner.span = SourceSpan(offset: start.offset, length: lastEnd - start.offset)
        return .operand(inner)
    }

    func operand(
        _ expression: Expression, from start: RQLToken, shape: Operand.Shape = .value
    ) -> Operand {
        Operand(
            expression: expression, quantifier: nil,
            span: SourceSpan(offset: start.offset, length: lastEnd - start.offset),
            shape: shape)
    }

    /// Reads a quantifier, and the path, list or argument after it.
    private mutating func quantified() throws(PredicateError) -> Operand {
        let start = current
        let quantifier: Quantifier =
            switch start.kind {
            case .keyword(.all): .all
            case .keyword(.none): .none
            default: .any
            }
        advance()
        var operand: Operand
        switch current.kind {
        case .symbol(.openBrace): operand = try list()
        case .argument:
            let token = current
            let expression = try argument()
            operand = self.operand(expression, from: token)
            try checkIsList(expression, at: token)
        case .constant, .objectKey:
            throw unexpected(
                expected: "a path or list after \(quantifier.rawValue)",
                hint: "write the quantifier before the list: 5 IN ANY items.price")
        default: operand = try path()
        }
        operand.quantifier = quantifier
        operand.span = SourceSpan(offset: start.offset, length: lastEnd - start.offset)
        return operand
    }

    private func checkIsList(
        _ expression: Expression, at token: RQLToken
    ) throws(PredicateError) {
        guard case .constant(let value) = expression else { return }
        switch value {
        case .list, .set: return
        default:
            throw PredicateError(
                .check, "a quantifier needs a list, but \(spelling(of: token)) is \(value.kind)",
                at: span(of: token), expected: "a list")
        }
    }

    // MARK: Constants

    /// Reads the constant at the current token, or returns `nil` if there is none.
    mutating func constant() throws(PredicateError) -> Expression? {
        let token = current
        switch token.kind {
        case .constant(let value, _):
            advance()
            return .constant(value)
        case .argument: return try argument()
        case .objectKey:
            advance()
            return .constant(try link(to: token))
        case .keyword(.object): return try object()
        case .keyword(.binary) where next.kind == .symbol(.openParenthesis):
            return try binary()
        default: return nil
        }
    }

    /// Returns a link to the record whose name is the key: `O12`, or `L3:12` in hexadecimal digits.
    ///
    /// The number of the type is ignored, because it has a meaning only within one Realm file.
    private func link(to token: RQLToken) throws(PredicateError) -> FieldValue {
        let parts = spelling(of: token).dropFirst().split(separator: ":")
        let key = parts.last.flatMap { UInt64($0, radix: parts.count == 2 ? 16 : 10) }
        guard let name = key.flatMap({ RecordName(rawValue: String($0)) }) else {
            throw PredicateError(
                .check, "the key of an object does not fit in 64 bits", at: span(of: token),
                expected: "a 64-bit integer")
        }
        return .reference(RecordReference(RecordID(recordName: name)))
    }

    private var next: RQLToken { tokens[min(position + 1, tokens.count - 1)] }

    /// Reads `$n`.
    ///
    /// Returns its value, or a variable if there are no arguments.
    mutating func argument() throws(PredicateError) -> Expression {
        guard case .argument(let number) = current.kind else {
            throw unexpected(expected: "an argument such as $0")
        }
        let token = current
        advance()
        if arguments.isEmpty { return .variable(String(number)) }
        guard number < arguments.count else { throw missingArgument(token) }
        try room.name(number, arguments[number], at: span(of: token))
        return .constant(arguments[number])
    }

    func missingArgument(_ token: RQLToken) -> PredicateError {
        PredicateError(
            .check,
            "there is no argument for \(spelling(of: token)); arguments given: "
                + "\(arguments.count), counted from 0",
            at: span(of: token), expected: "as many arguments as the query uses")
    }

    /// Reads `obj("Type", key)`, a reference to the record with that name.
    private mutating func object() throws(PredicateError) -> Expression {
        advance()
        try expect(.openParenthesis)
        guard case .constant(.string, _) = current.kind else {
            throw unexpected(expected: "the name of a type in quotes")
        }
        advance()
        try expect(.comma)
        let token = current
        guard let key = try constant() else { throw unexpected(expected: "a primary key") }
        try expect(.closeParenthesis)
        guard case .constant(let value) = key else { return key }
        guard let name = value.primaryKeyText.flatMap(RecordName.init(rawValue:)) else {
            throw PredicateError(
                .check, "a primary key must be a text, an integer, a UUID or an object ID",
                at: span(of: token), expected: "a text, an integer, a UUID or an object ID")
        }
        return .constant(.reference(RecordReference(RecordID(recordName: name))))
    }

    /// Reads `binary("text")` or `binary(B64"…")`.
    private mutating func binary() throws(PredicateError) -> Expression {
        advance()
        try expect(.openParenthesis)
        let bytes: [UInt8]
        switch current.kind {
        case .constant(.string(let text), _): bytes = Array(text.utf8)
        case .constant(.bytes(let decoded), _): bytes = decoded
        default: throw unexpected(expected: "a text or B64\"…\"")
        }
        advance()
        try expect(.closeParenthesis)
        return .constant(.bytes(bytes))
    }

    // MARK: Lists

    /// Reads `{constant, …}`.
    ///
    /// Properties are not allowed in such a list.
    mutating func list() throws(PredicateError) -> Operand {
        let start = current
        advance()
        var elements: [Expression] = []
        while current.kind != .symbol(.closeBrace) {
            if !elements.isEmpty { try expect(.comma) }
            guard let element = try constant() else {
                throw unexpected(
                    expected: elements.isEmpty ? "a constant or }" : "a constant",
                    hint: "a list in braces holds constants and arguments only")
            }
            elements.append(element)
            guard elements.count <= Limits.maximumPredicateListElements else {
                throw PredicateError(
                    .parse,
                    "the list has more than \(Limits.maximumPredicateListElements) elements",
                    at: span(of: start),
                    expected: "at most \(Limits.maximumPredicateListElements) elements")
            }
        }
        advance()
        return operand(.list(elements), from: start, shape: .list)
    }
}
