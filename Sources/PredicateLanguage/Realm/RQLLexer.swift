import RelayModel

/// A lexer that splits a text of the Realm Query Language into tokens.
///
/// The longest match wins.
struct RQLLexer {
    let bytes: [UInt8]
    var index = 0

    /// Splits the whole text into tokens.
    ///
    /// The last one is ``RQLToken/Kind/end``.
    ///
    /// - Throws: ``PredicateError`` at the first place where no token begins.
    /// - Complexity: O(*n*) in the number of bytes.
    static func tokens(of text: String) throws(PredicateError) -> [RQLToken] {
        var lexer = RQLLexer(bytes: Array(text.utf8))
        var tokens: [RQLToken] = []
        while true {
            let token = try lexer.next()
            tokens.append(token)
            if token.kind == .end { return tokens }
        }
    }

    private mutating func next() throws(PredicateError) -> RQLToken {
        while let byte = byte(at: index), byte.isBlank { index += 1 }
        let start = index
        guard let first = byte(at: start) else {
            return RQLToken(kind: .end, offset: start, length: 0)
        }
        let kind = try kind(from: first)
        return RQLToken(kind: kind, offset: start, length: index - start)
    }

    private mutating func kind(from first: UInt8) throws(PredicateError) -> RQLToken.Kind {
        if first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") {
            return .constant(.string(try text(quotedBy: first)), isNatural: false)
        }
        if let constant = try number() ?? signedWord() { return constant }
        if first == UInt8(ascii: "$"), let argument = argument() { return argument }
        if first == UInt8(ascii: "@") { return .member(try member()) }
        if Self.beginsName(first) { return try word() }
        if let symbol = symbol() { return .symbol(symbol) }
        throw unexpectedByte()
    }

    // MARK: Words

    private mutating func word() throws(PredicateError) -> RQLToken.Kind {
        let start = index
        let nameEnd = endOfName(from: start)
        if let special = try specialConstant(longerThan: nameEnd) { return special }
        index = nameEnd
        let raw = string(start, nameEnd)
        if let constant = Self.constantWord(raw) { return .constant(constant, isNatural: false) }
        if let keyword = RQLKeyword(spelling: raw) { return .keyword(keyword) }
        if Self.isObjectKey(bytes[start..<nameEnd]) { return .objectKey }
        return .name(Self.decodingBlanks(raw))
    }

    /// Returns the constant that a word spells.
    ///
    /// `true` and `false` have two spellings each; the other words are not case-sensitive.
    private static func constantWord(_ word: String) -> FieldValue? {
        switch word {
        case "true", "TRUE": return .bool(true)
        case "false", "FALSE": return .bool(false)
        default: break
        }
        guard word.utf8.count <= 8 else { return nil }
        return switch word.lowercased() {
        case "null", "nil": .null
        case "inf", "infinity": .double(.infinity)
        case "nan": .double(.nan)
        default: nil
        }
    }

    /// Reads a signed constant such as `+inf`, `-Infinity` or `-nan`.
    ///
    /// The sign is part of the constant.
    private mutating func signedWord() -> RQLToken.Kind? {
        guard let sign = byte(at: index), sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"),
            let first = byte(at: index + 1), Self.beginsName(first)
        else { return nil }
        let end = endOfName(from: index + 1)
        guard case .double(let number) = Self.constantWord(string(index + 1, end)) else {
            return nil
        }
        index = end
        return .constant(.double(sign == UInt8(ascii: "-") ? -number : number), isNatural: false)
    }

    private mutating func argument() -> RQLToken.Kind? {
        var cursor = index + 1
        let isKeyPath = byte(at: cursor) == UInt8(ascii: "K")
        if isKeyPath { cursor += 1 }
        let digits = cursor
        while let byte = byte(at: cursor), byte.isDigit { cursor += 1 }
        guard cursor > digits, cursor == endOfName(from: index),
            let number = Int(string(digits, cursor))
        else { return nil }
        index = cursor
        return isKeyPath ? .keyPathArgument(number) : .argument(number)
    }

    private mutating func member() throws(PredicateError) -> RQLMember {
        let end = endOfName(from: index + 1)
        guard let member = RQLMember(rawValue: string(index, end)) else {
            throw failure(
                from: index, to: end,
                expected: RQLMember.allCases.map(\.rawValue).joined(separator: ", "),
                hint: "write words after @ in lower case")
        }
        index = end
        return member
    }

    /// Reads the longest symbol that begins here.
    ///
    /// The loop finds it because ``RQLSymbol`` lists longer symbols first.
    private mutating func symbol() -> RQLSymbol? {
        for symbol in RQLSymbol.allCases where starts(with: symbol.rawValue) {
            index += symbol.rawValue.utf8.count
            return symbol
        }
        return nil
    }

    /// Returns whether a word is an object key of the form `O` and digits.
    private static func isObjectKey(_ word: ArraySlice<UInt8>) -> Bool {
        word.first == UInt8(ascii: "O") && (2...20).contains(word.count)
            && word.dropFirst().allSatisfy(\.isDigit)
    }

    // MARK: Text constants

    /// Reads a text constant, and returns the characters between the quotes unchanged.
    ///
    /// Like realm-core, it validates escapes but does not decode them.
    private mutating func text(quotedBy quote: UInt8) throws(PredicateError) -> String {
        let start = index
        index += 1
        while let byte = byte(at: index) {
            if byte == quote {
                index += 1
                return string(start + 1, index - 1)
            }
            if byte == UInt8(ascii: "\\") {
                try skipEscape()
            } else {
                index += 1
            }
        }
        throw failure(from: start, to: bytes.count, expected: "the closing quote", hint: nil)
    }

    private mutating func skipEscape() throws(PredicateError) {
        switch byte(at: index + 1) {
        case let byte? where "\"'/bfnrt0\\".utf8.contains(byte):
            index += 2
        case UInt8(ascii: "u"):
            let digits = index + 2
            guard (digits..<digits + 4).allSatisfy({ Self.isHexDigit(byte(at: $0) ?? 0) }) else {
                throw badEscape()
            }
            index += 6
        default: throw badEscape()
        }
    }

    private func badEscape() -> PredicateError {
        failure(
            from: index, to: min(index + 2, bytes.count),
            expected: #"\" \' \\ \/ \b \f \n \r \t \0 or \u and four hexadecimal digits"#,
            hint: #"write a backslash itself as \\"#)
    }
}
