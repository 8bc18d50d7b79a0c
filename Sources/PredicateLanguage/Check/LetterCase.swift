import RelayModel

/// Finds comparisons of `uppercase(…)` and `lowercase(…)` with letters of the wrong case.
enum LetterCase {
    typealias Comparison = RecordPredicate.Comparison
    typealias Expression = RecordPredicate.Expression

    /// Returns whether a comparison looks for a text that such a function never returns, as
    /// `lowercase(name) == 'Bob'` does.
    ///
    /// Only ASCII letters are checked, because no other character maps to an ASCII letter of the
    /// wrong case.
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
