import RelayModel

// The steps of paths and comparisons by Realm's rules.
extension StepMeter {
    /// Charges for one step of a path under Realm's rules.
    ///
    /// A step processes many values at once, and replaces lists by their elements.
    func charge(walking values: [FieldValue]) throws(EvaluationError) {
        var count = values.count
        for value in values {
            switch value {
            case .list(let inner): count += inner.count
            // The elements of sets are sorted when the sets are opened.
            case .set(let inner):
                let ordered = min(inner.count, Set<FieldValue>.mostOrdered)
                count += inner.count + ordered * (Self.ordering / Self.value)
            case .map: count += 1
            default: continue
            }
        }
        try charge(Self.part + count * Self.value)
    }

    /// Charges for sorting the members of dictionaries.
    func charge(ordering values: [FieldValue]) throws(EvaluationError) {
        var count = 0
        for case .map(let members) in values {
            count += min(members.count, Set<FieldValue>.mostOrdered)
        }
        try charge(count * Self.ordering)
    }

    /// Charges for a comparison of two sides under Realm's rules.
    func charge(
        _ left: RealmEvaluator.Operand, _ right: RealmEvaluator.Operand,
        _ comparison: RecordPredicate.Comparison
    ) throws(EvaluationError) {
        try charge(Self.comparison)
        if case .single(let one) = left, case .single(let other) = right, one.isSmall,
            other.isSmall
        {
            return
        }
        let first = try extent(of: left)
        let second = try extent(of: right)
        // Dictionaries among the elements are compared by their values.
        let count = first.collections > 1 ? first.values : left.count
        let others = second.collections > 1 ? second.values : right.count
        let isPairwise = comparison.quantifier == nil && comparison.rightQuantifier == nil
        if case .list = left, case .list = right, isPairwise, comparison.comparator != .in {
            return try charge(first.reading + second.reading)
        }
        try charge(count * others * Self.value)
        switch comparison.comparator {
        case .like:
            let words = second.bytes / 64 + 1
            try charge(words * (others * first.reading + count * second.reading))
        case .tokenMatches:
            // Each word that ends in a star is tried on each word of the text.
            try charge(4 * (others * first.reading + count * second.reading))
            try charge(first.bytes * (second.bytes / 4))
        case .beginsWith, .endsWith, .contains:
            try charge(2 * (others * first.reading + count * second.reading))
        default:
            let isEquality = !comparison.options.folds && second.collections <= 1
            try charge(
                isEquality
                    ? min(others * first.reading, count * second.reading)
                    : others * first.reading + count * second.reading)
        }
    }

    /// Charges for testing locations against a shape.
    func charge(
        places: RealmEvaluator.Operand, in shape: RecordPredicate.Expression
    ) throws(EvaluationError) {
        let first = try extent(of: places)
        var corners = Extent()
        for value in shape.constants {
            let extent = try extent(of: value)
            corners.values += extent.values
            corners.bytes += extent.bytes
        }
        try charge(Self.comparison + corners.reading * 16)
        try charge(first.values * (corners.values + corners.bytes / 8 + 1) * 16)
    }

    private func extent(of operand: RealmEvaluator.Operand) throws(EvaluationError) -> Extent {
        switch operand {
        case .single(let value): try extent(of: value)
        case .list(let values): try extent(of: values)
        }
    }
}

extension RealmEvaluator.Operand {
    /// The number of values.
    var count: Int {
        switch self {
        case .single: 1
        case .list(let values): values.count
        }
    }
}

extension RecordPredicate.Expression {
    /// The constants of a shape.
    var constants: [FieldValue] {
        switch self {
        case .constant(let value): [value]
        case .call(_, let arguments), .list(let arguments): arguments.flatMap(\.constants)
        default: []
        }
    }
}
