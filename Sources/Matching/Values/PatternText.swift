/// A pattern of `*` and `?` taken apart.
///
/// A backslash makes `*`, `?` and itself plain, and stands for itself before anything else.
struct PatternText {
    /// The literal text before the first wildcard.
    private(set) var prefix = ""
    /// The longest literal text between wildcards.
    private(set) var longest = ""
    /// Whether there is a wildcard.
    private(set) var hasWildcards = false
    /// The bytes of the pattern as rows want them: 0xFF for `*`, 0xFE for `?`, which no text has.
    private(set) var bytes: [UInt8] = []

    /// Longer patterns are not matched by rows.
    static let longestRow = 64
    static let many: UInt8 = 0xFF
    static let one: UInt8 = 0xFE

    /// Takes a pattern apart; by Realm's rules a backslash makes anything plain, and is gone.
    init(_ pattern: String, escapesAnything: Bool = false) {
        var literal = String.UnicodeScalarView()
        var isEscaped = false
        for scalar in pattern.unicodeScalars {
            if scalar == "\\", !isEscaped {
                isEscaped = true
                continue
            }
            let isSpecial = scalar == "*" || scalar == "?"
            if isSpecial, !isEscaped {
                end(literal)
                literal.removeAll()
                bytes.append(scalar == "*" ? Self.many : Self.one)
            } else {
                if isEscaped, !isSpecial, scalar != "\\", !escapesAnything {
                    append("\\", to: &literal)
                }
                append(scalar, to: &literal)
            }
            isEscaped = false
        }
        if isEscaped, !escapesAnything { append("\\", to: &literal) }
        let isWhole = !hasWildcards
        end(literal)
        hasWildcards = !isWhole
    }

    private mutating func append(
        _ scalar: Unicode.Scalar, to literal: inout String.UnicodeScalarView
    ) {
        literal.append(scalar)
        bytes.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
    }

    private mutating func end(_ literal: String.UnicodeScalarView) {
        let text = String(literal)
        if !hasWildcards { prefix = text }
        hasWildcards = true
        if text.utf8.count > longest.utf8.count { longest = text }
    }

    /// What of a folded prefix a text must begin with where a regular expression ignored case.
    ///
    /// Beyond ASCII the two notions of case differ. At its end an `s` may have been a long s with a
    /// mark, which folds to a letter of its own.
    static func plainPrefix(_ prefix: String) -> String? {
        var plain = Array(prefix.utf8.prefix { $0 < 0x80 })
        while let last = plain.last, [0x73, 0x6B].contains(last) { plain.removeLast() }
        return plain.isEmpty ? nil : String(decoding: plain, as: UTF8.self)
    }

    /// The letters and digits with which every text begins that a regular expression matches as a
    /// whole; `nil` if it does not say.
    ///
    /// The expression is held against a text as it is, and the prefix against the composed form, in
    /// which a mark has become one with the letter before it: so the last of them counts only where
    /// no mark can follow.
    static func prefix(ofRegularExpression pattern: String) -> String? {
        let bytes = Array(pattern.utf8)
        if bytes.contains(UInt8(ascii: "|")) || pattern.contains("(?") { return nil }
        var count = 0
        while count < bytes.count, isPlain(bytes[count]) { count += 1 }
        if isQuantifier(bytes, at: count) {
            // What may be repeated no times is not there for sure, nor what follows the one before.
            count -= 2
        } else if !isFollowedPlainly(bytes, at: count) {
            count -= 1
        }
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }

    /// Whether a quantifier stands there by which something may be repeated no times.
    private static func isQuantifier(_ bytes: [UInt8], at index: Int) -> Bool {
        index < bytes.count && [0x2A, 0x3F, 0x7B].contains(bytes[index])
    }

    /// Whether a text ends there, or goes on with what is no mark: the letter before, once more, or
    /// another sign.
    private static func isFollowedPlainly(_ bytes: [UInt8], at index: Int) -> Bool {
        var next = index
        if next < bytes.count, bytes[next] == UInt8(ascii: "+") { next += 1 }
        guard next < bytes.count else { return true }
        return isPlain(bytes[next]) && !isQuantifier(bytes, at: next + 1)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x20, 0x2D, 0x5F: true
        default: false
        }
    }
}
