import RelayModel

extension RecordPredicate.Comparison {
    /// The most values of a list that are asked for one by one.
    private static let mostParts = 32

    /// The same with the field where comparisons are found by keys; `nil` if it is not one whose
    /// constants stand first.
    ///
    /// CloudKit's clients write `ANY {"red", "green"} = colour` for `colour IN {"red", "green"}`,
    /// and `ANY {"red", "green"} IN tags` for `tags CONTAINS "red" OR tags CONTAINS "green"`. What
    /// is true, false or an error of the one is so of the other, in the order of the list.
    var fieldFirst: RecordPredicate.Node? {
        guard rules == .apple, rightQuantifier == nil, left.literal?.elements != nil,
            case .path(let path) = right, path.memberNames?.isEmpty == false
        else { return nil }
        switch (comparator, quantifier) {
        case (.contains, nil), (.equal, .any?): return .comparison(turned(.in))
        case (.equal, RecordPredicate.Quantifier.none?): return .not(.comparison(turned(.in)))
        case (.in, let quantifier?): return parts(quantifier)
        default: return nil
        }
    }

    private func turned(_ comparator: RecordPredicate.Comparator) -> Self {
        var turned = self
        (turned.left, turned.right) = (right, left)
        (turned.leftSpan, turned.rightSpan) = (rightSpan, leftSpan)
        turned.comparator = comparator
        turned.quantifier = nil
        return turned
    }

    /// One comparison for each value of a list; a set has no order in which errors could show.
    private func parts(_ quantifier: RecordPredicate.Quantifier) -> RecordPredicate.Node? {
        guard case .list(let values)? = left.literal, (1...Self.mostParts).contains(values.count)
        else { return nil }
        let parts = values.map { value -> RecordPredicate.Node in
            var part = turned(.contains)
            part.right = .constant(value)
            return .comparison(part)
        }
        return switch quantifier {
        case .any: .or(parts)
        case .all: .and(parts)
        case .none: .not(.or(parts))
        }
    }
}
