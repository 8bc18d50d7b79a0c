/// Which characters may stand in an identifier of a format.
enum Identifiers {
    /// Whether `scalar` may stand in an identifier.
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

    /// Whether `text` is one identifier.
    static func isIdentifier(_ text: String) -> Bool {
        var isFirst = true
        for scalar in text.unicodeScalars {
            guard allows(scalar, isFirst: isFirst) else { return false }
            isFirst = false
        }
        return !isFirst
    }
}
