import RelayModel

/// A text in capital letters has no small ones, and one in small letters no capitals.
enum LetterCase {
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression

    /// Whether a comparison looks for what such a text never has, as `lowercase(name) == 'Bob'`
    /// does.
    ///
    /// Only letters of ASCII are looked at: no other character becomes one of the wrong case.
    static func isMistaken(_ comparison: Comparison) -> Bool {
        guard comparison.rules == .apple, comparison.options.isEmpty,
            comparison.quantifier == nil, comparison.rightQuantifier == nil
        else { return false }
        let (left, right) = (comparison.left, comparison.right)
        switch comparison.comparator {
        case .equal: return isNever(left, right.literal) || isNever(right, left.literal)
        case .beginsWith, .endsWith, .contains, .like: return isNever(left, right.literal)
        case .in:
            guard case .list(let values)? = right.literal, !values.isEmpty else { return false }
            return values.allSatisfy { isNever(left, $0) }
        default: return false
        }
    }

    private static func isNever(_ side: Expression, _ value: FieldValue?) -> Bool {
        guard case .call(let function, _) = side, case .string(let text)? = value else {
            return false
        }
        switch function {
        case .uppercase: return text.utf8.contains { $0 &- 0x61 < 26 }
        case .lowercase: return text.utf8.contains { $0 &- 0x41 < 26 }
        default: return false
        }
    }
}
