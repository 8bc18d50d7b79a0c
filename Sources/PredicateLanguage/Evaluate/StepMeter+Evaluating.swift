import RelayModel

// The steps of an evaluation by NSPredicate's rules.
extension StepMeter {
    /// The worst-case steps of a regular expression for each byte of a text, if the expression came
    /// from the record, so that its size is not known in advance.
    private static let unknownExpression = 14_000
    /// The number of a regular expression's instructions, each for one byte, that make one step.
    ///
    /// If RE2's automaton grows too large, RE2 goes through all instructions at each byte, and an
    /// instruction takes about 7 ns. That is rare. Otherwise a byte takes 1 ns, whatever the size.
    /// With this factor the worst evaluation takes a fifth of a second. The time that all
    /// conditions of a change may take is measured separately.
    private static let instructionsPerStep = 3

    /// The steps to compile a LIKE pattern, however short it is.
    private static let pattern = 1024

    /// Charges for a comparison of two values under Apple's rules.
    func charge(
        _ left: FieldValue, _ right: FieldValue, as comparison: PreparedComparison
    ) throws(EvaluationError) {
        try charge(Self.comparison)
        let source = comparison.source
        var count = 1
        if source.quantifier != nil || comparison.isOverAnyKey { count = left.elementCount ?? 1 }
        if count == 1, left.isSmall, right.isSmall, source.comparator != .matches {
            return try charge(try steps(ofSmall: left, right, comparison))
        }
        let first = try extent(of: left)
        // A constant list that has been sorted is not walked.
        if source.comparator == .in, comparison.members != nil {
            let nested = max(first.collections - (source.quantifier == nil ? 0 : 1), 0)
            let elements = right.elementCount ?? 1
            return try charge(first.reading + (count + nested * elements) * Self.value)
        }
        let sides = Sides(left: first, right: try extent(of: right), count: count)
        try charge(count * Self.value)
        try charge(steps(of: sides, right.elementCount ?? 1, comparison))
        let foldings = Foldings(of: left, right, count, comparison)
        if source.foldsTexts {
            let texts =
                foldings.left * sides.left.foreignTexts
                + foldings.right * sides.right.foreignTexts
            try charge(texts * Self.folding)
        }
        try chargeComposing((left, first), (right, sides.right), foldings, comparison)
        if comparison.compilesPattern { try charge(count * Self.pattern) }
    }

    /// Charges for composing and folding texts whose characters depend on their neighbours.
    ///
    /// Both sides are composed whole, or side by side up to their first difference.
    private func chargeComposing(
        _ left: (value: FieldValue, extent: Extent), _ right: (value: FieldValue, extent: Extent),
        _ foldings: Foldings, _ comparison: PreparedComparison
    ) throws(EvaluationError) {
        let (source, isWhole) = (comparison.source, comparison.composesWholly(right.value))
        guard left.extent.foreign + right.extent.foreign > 0,
            isWhole || min(left.extent.foreign, right.extent.foreign) > 0
        else { return }
        var (first, second) = (0, 0)
        if foldings.left > 0 {
            first = foldings.left * (try tangledBytes(of: left.value, source.options))
        }
        if foldings.right > 0 {
            second = foldings.right * (try tangledBytes(of: right.value, source.options))
        }
        try charge((isWhole ? first + second : min(first, second)) * Self.composing)
    }

    /// Returns the steps for two small values in addition to those of a comparison of numbers.
    private func steps(
        ofSmall left: FieldValue, _ right: FieldValue, _ comparison: PreparedComparison
    ) throws(EvaluationError) -> Int {
        var steps = comparison.compilesPattern ? Self.pattern : 0
        guard comparison.source.foldsTexts else { return steps }
        let options = comparison.source.options
        if left.isForeignText {
            steps += Self.folding + (try tangledBytes(of: left, options)) * Self.composing
        }
        if right.isForeignText, !comparison.isPrepared {
            steps += Self.folding + (try tangledBytes(of: right, options)) * Self.composing
        }
        return steps
    }

    /// How often the texts of each side of a comparison are composed or folded.
    private struct Foldings {
        var left = 1
        var right: Int

        init(
            of left: FieldValue, _ right: FieldValue, _ count: Int,
            _ comparison: PreparedComparison
        ) {
            self.right = comparison.isPrepared ? 0 : count
            guard comparison.source.options.folds else { return }
            // One side is compared with each element of the other.
            switch comparison.source.comparator {
            case .in: self.left = max(right.elementCount ?? 1, 1)
            case .contains: self.right *= max(left.elementCount ?? 1, 1)
            case .between: self.left = 2
            default: break
            }
        }
    }

    private struct Sides {
        /// The extent of the whole left side.
        var left: Extent
        var right: Extent
        /// The number of values of the left side that are compared.
        var count: Int

        /// The steps to read the left side once, and the right side for each value of the left
        /// side.
        var product: Int { left.reading + count * right.reading }
        var hasNesting: Bool { left.collections > 1 || right.collections > 0 }
    }

    private func steps(
        of sides: Sides, _ members: Int, _ comparison: PreparedComparison
    ) -> Int {
        let source = comparison.source
        let folds = source.options.folds
        switch source.comparator {
        case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual:
            // Two texts are read only up to their first difference.
            return folds || sides.hasNesting
                ? sides.product
                : min(sides.left.reading, sides.count * sides.right.reading)
        case .between, .beginsWith, .endsWith, .typeEquals, .geoWithin: return sides.product
        case .in:
            let isProduct = folds || sides.right.collections > 1
            return sides.count * sides.right.reading
                + (isProduct ? members : 1) * sides.left.reading
        case .contains:
            let isProduct = folds || sides.left.collections > 1
            return sides.left.reading * (comparison.words == nil ? 1 : 4)
                + (isProduct ? max(sides.left.values, 1) : sides.count) * sides.right.reading
        case .like:
            let words = sides.right.bytes / 64 + 1
            let compiling =
                comparison.pattern == nil
                ? sides.count * (sides.right.reading + sides.right.bytes * words) : 0
            return sides.left.reading * words + compiling
        case .matches:
            guard let size = comparison.pattern?.size else {
                return sides.left.reading + sides.left.bytes * Self.unknownExpression
                    + sides.count * (20_000 + sides.right.bytes * 200)
            }
            return sides.left.reading + sides.left.bytes * size / Self.instructionsPerStep
        case .tokenMatches:
            let words = comparison.words == nil ? sides.count * sides.right.reading * 4 : 0
            return sides.left.reading * 4 + words
        }
    }
}

extension StepMeter {
    /// Charges for one step of a path that starts at `value`.
    func charge(
        _ step: PreparedExpression.Step, on value: FieldValue
    ) throws(EvaluationError) {
        try charge(Self.part)
        switch (step, value) {
        // The elements of a set or dictionary are first copied to a list, in order.
        case (_, .set), (.every, .map), (.collection, .map):
            try charge((value.elementCount ?? 0) * Self.ordering)
        case (.every, _), (.collection, _):
            try charge((value.elementCount ?? 0) * Self.value)
        // The properties of a text are computed from the whole text. Other values have a
        // description.
        case (.member, .string), (.variableMember, .string), (.member, .bytes),
            (.variableMember, .bytes):
            try charge(Self.folding + (try extent(of: value).reading) * 2)
        default: return
        }
    }

    /// Charges for a comparison by rules that read each side once and have no nested loops.
    ///
    /// For such a comparison, charging afterwards is enough.
    func charge(_ judged: Judgement) throws(EvaluationError) {
        let left = try extent(of: judged.left)
        let right = try extent(of: judged.right)
        // A list in the record is compared with a constant element by element.
        try charge(Self.comparison + left.reading + left.collections * right.reading)
    }
}

private extension RecordPredicate.Comparison {
    /// Whether the comparison reads texts in a folded or composed form.
    var foldsTexts: Bool {
        switch comparator {
        case .beginsWith, .endsWith, .contains, .like, .tokenMatches: true
        // The order of texts is that of their composed forms.
        case .less, .lessOrEqual, .greater, .greaterOrEqual, .between: true
        default: options.folds
        }
    }
}

private extension FieldValue {
    /// Whether the value is a text with non-ASCII characters.
    var isForeignText: Bool {
        if case .string(let text) = self { text.utf8.contains { $0 >= 0x80 } } else { false }
    }
}

extension PreparedComparison {
    /// Whether a LIKE pattern is compiled for each text.
    var compilesPattern: Bool { source.comparator == .like && pattern == nil }

    /// Whether the right side has already been composed, folded and compiled.
    var isPrepared: Bool { needle != nil || pattern != nil || words != nil }

    /// Returns whether texts are composed or folded as a whole, and not only up to their first
    /// difference.
    func composesWholly(_ right: FieldValue) -> Bool {
        switch source.comparator {
        case .beginsWith, .endsWith, .contains, .like, .tokenMatches, .typeEquals: return true
        case .in:
            if case .string = right { return true }
            return source.options.folds
        default: return source.options.folds
        }
    }

    /// Whether the left side is `ANYKEY`, so that each of its values is compared.
    var isOverAnyKey: Bool {
        if case .anyKey = left { true } else { false }
    }
}
