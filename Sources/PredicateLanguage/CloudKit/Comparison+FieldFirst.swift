import RelayModel

extension RecordPredicate.Comparison {
    /// The maximum number of list values that are split into comparisons of their own.
    private static let mostParts = 32

    /// The same condition with the field first, where the index finds comparisons by their keys.
    ///
    /// It is `nil` if the constants do not come first.
    ///
    /// CloudKit's clients write `ANY {"red", "green"} = colour` for `colour IN {"red", "green"}`,
    /// and `ANY {"red", "green"} IN tags` for `tags CONTAINS "red" OR tags CONTAINS "green"`. Both
    /// forms have the same outcome for every record (true, false or an error), because the list
    /// keeps its order.
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

    /// Returns one comparison for each value of a list.
    ///
    /// Sets are not split. Their elements have no order, which decides where an error occurs.
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
