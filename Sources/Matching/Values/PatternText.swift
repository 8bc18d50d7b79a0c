/// A pattern of `*` and `?`, split into its parts.
///
/// A backslash makes `*`, `?` and a backslash literal; before any other character it is literal
/// itself.
struct PatternText {
    /// The literal text before the first wildcard.
    private(set) var prefix = ""
    /// The longest literal text between wildcards.
    private(set) var longest = ""
    /// Whether there are wildcards.
    private(set) var hasWildcards = false
    /// The pattern's bytes for rows: 0xFF for `*` and 0xFE for `?`, which occur in no text.
    private(set) var bytes: [UInt8] = []

    /// The length in bytes of the longest pattern that rows match.
    static let longestRow = 64
    static let many: UInt8 = 0xFF
    static let one: UInt8 = 0xFE

    /// Splits a pattern.
    ///
    /// With `escapesAnything`, Realm's rule applies: a backslash makes any character literal and is
    /// removed.
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

    /// Returns the part of a folded prefix with which every text must begin that a regular
    /// expression matches while ignoring case.
    ///
    /// Beyond ASCII, the two rules for case differ. A trailing `s` or `k` is dropped: an `s`, for
    /// example, may have been a long s with a mark, which folds to a letter of its own.
    static func plainPrefix(_ prefix: String) -> String? {
        var plain = Array(prefix.utf8.prefix { $0 < 0x80 })
        while let last = plain.last, [0x73, 0x6B].contains(last) { plain.removeLast() }
        return plain.isEmpty ? nil : String(decoding: plain, as: UTF8.self)
    }

    /// Returns the letters and digits with which every text begins that a regular expression
    /// matches as a whole; `nil` if the expression does not determine any.
    ///
    /// The expression is matched against the text as it is, but the prefix is compared with the
    /// composed form, in which a mark is part of the letter before it. So the last letter counts
    /// only if no mark can follow it.
    static func prefix(ofRegularExpression pattern: String) -> String? {
        let bytes = Array(pattern.utf8)
        if bytes.contains(UInt8(ascii: "|")) || pattern.contains("(?") { return nil }
        var count = 0
        while count < bytes.count, isPlain(bytes[count]) { count += 1 }
        if isQuantifier(bytes, at: count) {
            // A character that may occur zero times is not certain, and the one before it may be
            // followed by a mark.
            count -= 2
        } else if !isFollowedPlainly(bytes, at: count) {
            count -= 1
        }
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }

    /// Returns whether a quantifier that allows zero repetitions is at `index`.
    private static func isQuantifier(_ bytes: [UInt8], at index: Int) -> Bool {
        index < bytes.count && [0x2A, 0x3F, 0x7B].contains(bytes[index])
    }

    /// Returns whether the text ends at `index` or continues with something that is not a mark: a
    /// repetition of the letter before, or another plain character.
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
