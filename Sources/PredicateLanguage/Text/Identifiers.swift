/// The characters that an identifier of a format may contain.
enum Identifiers {
    /// Returns whether an identifier may contain `scalar`, either as its first character or later.
    static func allows(_ scalar: Unicode.Scalar, isFirst: Bool) -> Bool {
        if scalar == "_" { return true }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .letterNumber:
            return true
        case .decimalNumber, .nonspacingMark, .spacingMark, .connectorPunctuation: return !isFirst
        default: return false
        }
    }

    /// Returns whether `text` is an identifier.
    static func isIdentifier(_ text: String) -> Bool {
        var isFirst = true
        for scalar in text.unicodeScalars {
            guard allows(scalar, isFirst: isFirst) else { return false }
            isFirst = false
        }
        return !isFirst
    }
}
