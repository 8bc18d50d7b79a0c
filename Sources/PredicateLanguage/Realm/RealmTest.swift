import RelayModel

extension RealmEvaluator {
    /// The test of a comparison on two single values.
    struct Test {
        let comparator: RecordPredicate.Comparator
        private let ignoresCase: Bool
        private let comparesTypes: Bool
        /// The right side, if it is a constant text or binary data.
        private let needle: RealmText?
        /// The right side as a LIKE pattern, if it is constant.
        private let pattern: LikePattern?

        init(_ comparison: Comparison) {
            comparator = comparison.comparator == .in ? .equal : comparison.comparator
            ignoresCase = comparison.options.contains(.ignoringCase)
            comparesTypes = comparison.left.namesType || comparison.right.namesType
            let options: RecordPredicate.TextOptions = ignoresCase ? .ignoringCase : []
            let constant = comparison.right.literal
            needle =
                if let constant, constant.hasByteCount { RealmText(constant, options) } else { nil }
            pattern = comparison.comparator == .like ? needle.map { LikePattern($0.units) } : nil
        }

        func holds(_ left: FieldValue, _ right: FieldValue) -> Bool {
            if comparesTypes {
                return RealmTypeName.areAlike(left, right) == (comparator == .equal)
            }
            switch comparator {
            case .equal where ignoresCase: return isEqualIgnoringCase(left, right)
            case .notEqual where ignoresCase: return !isEqualIgnoringCase(left, right)
            case .beginsWith, .endsWith, .contains, .like, .tokenMatches:
                return holdsForTexts(left, right)
            default: return StrictOrder.holds(comparator, left, right)
            }
        }

        private func isEqualIgnoringCase(_ left: FieldValue, _ right: FieldValue) -> Bool {
            guard left.hasByteCount, right.hasByteCount else {
                return StrictOrder.isEqual(left, right)
            }
            return RealmText(left, .ignoringCase) == (needle ?? RealmText(right, .ignoringCase))
        }

        /// Compares texts.
        ///
        /// A nil needle is found in every text, and in nil too. Only nil is LIKE nil.
        private func holdsForTexts(_ text: FieldValue, _ needle: FieldValue) -> Bool {
            if needle.isNull { return comparator == .like ? text.isNull : true }
            guard text.hasByteCount, needle.hasByteCount else { return false }
            let options: RecordPredicate.TextOptions = ignoresCase ? .ignoringCase : []
            let text = RealmText(text, options)
            let needle = self.needle ?? RealmText(needle, options)
            switch comparator {
            case .beginsWith: return text.units.starts(with: needle.units)
            case .endsWith: return text.units.reversed().starts(with: needle.units.reversed())
            case .contains: return text.contains(needle)
            case .like: return (pattern ?? LikePattern(needle.units)).matches(text.units)
            default: return text.hasWords(of: needle)
            }
        }
    }
}

extension RecordPredicate.Expression {
    /// Whether this is a path that ends in `@type`.
    var namesType: Bool {
        switch self {
        case .path(let path), .member(_, let path): path.components.last == .collection(.type)
        default: false
        }
    }
}
