/// The errors of the lexer.
extension RQLLexer {
    func failure(
        from start: Int, to end: Int, expected: String, hint: String?
    ) -> PredicateError {
        let found = string(start, min(end, start + 40, bytes.count))
        return PredicateError(
            .parse, "expected \(expected), found \(found)",
            at: SourceSpan(offset: start, length: end - start), found: found,
            expected: expected, hint: hint)
    }

    /// Returns an error at a byte with which no token begins, with a hint at a similar token.
    func unexpectedByte() -> PredicateError {
        let hint: String? =
            switch bytes[index] {
            case UInt8(ascii: "&"): "write AND as && or AND"
            case UInt8(ascii: "|"): "write OR as || or OR"
            case UInt8(ascii: "%"): "write arguments as $0, $1 …"
            default: nil
            }
        return failure(
            from: index, to: index + 1, expected: "a name, constant or operator", hint: hint)
    }
}
