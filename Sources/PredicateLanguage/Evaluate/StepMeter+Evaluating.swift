import RelayModel

// What the steps of an evaluation take by NSPredicate's rules.
extension StepMeter {
    /// What a regular expression takes for each byte of a text at worst, if it came from the
    /// record and its size is not known before.
    private static let unknownExpression = 14_000
    /// How many instructions of a regular expression, each for one byte, make a step.
    ///
    /// Where RE2's automaton grows too large it goes through all instructions at each byte, and an
    /// instruction takes some 7 ns; nearly always it does not, and a byte takes 1 ns whatever the
    /// size. This lets the worst evaluation take a fifth of a second; what a change may take in
    /// all is measured.
    private static let instructionsPerStep = 3

    /// What it takes to compose or fold a text beyond ASCII, however short it is: a quarter of a
    /// microsecond, and a whole one where marks stand in it.
    private static let folding = 128
    /// What it takes to make a pattern of LIKE ready, however short it is.
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
            return try charge(steps(ofSmall: left, right, comparison))
        }
        let first = try extent(of: left)
        // A list of constants that has been sorted is not walked.
        if source.comparator == .in, comparison.members != nil {
            let nested = max(first.collections - (source.quantifier == nil ? 0 : 1), 0)
            let elements = right.elementCount ?? 1
            return try charge(first.reading + (count + nested * elements) * Self.value)
        }
        let sides = Sides(left: first, right: try extent(of: right), count: count)
        try charge(count * Self.value)
        try charge(steps(of: sides, right.elementCount ?? 1, comparison))
        if source.foldsTexts {
            let texts =
                sides.left.foreignTexts
                + (comparison.isPrepared ? 0 : count * sides.right.foreignTexts)
            try charge(texts * Self.folding)
        }
        if comparison.compilesPattern { try charge(count * Self.pattern) }
    }

    /// What two small values take beyond a comparison of numbers.
    private func steps(
        ofSmall left: FieldValue, _ right: FieldValue, _ comparison: PreparedComparison
    ) -> Int {
        var steps = comparison.compilesPattern ? Self.pattern : 0
        if comparison.source.foldsTexts {
            if left.isForeignText { steps += Self.folding }
            if right.isForeignText, !comparison.isPrepared { steps += Self.folding }
        }
        return steps
    }

    private struct Sides {
        /// The whole left side.
        var left: Extent
        var right: Extent
        /// How many values of the left side are compared.
        var count: Int

        /// Both read, the right one for each value of the left one.
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
            // Two texts are read as far as they are the same.
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
    /// Charges for a step of a path, by what it makes of the value where it begins.
    func charge(
        _ step: PreparedExpression.Step, on value: FieldValue
    ) throws(EvaluationError) {
        try charge(Self.part)
        switch (step, value) {
        // The elements of a set or dictionary are put into a list first, and in order.
        case (_, .set), (.every, .map), (.collection, .map):
            try charge((value.elementCount ?? 0) * Self.ordering)
        case (.every, _), (.collection, _):
            try charge((value.elementCount ?? 0) * Self.value)
        // Texts have properties that are made of the whole text, other values a description.
        case (.member, .string), (.variableMember, .string), (.member, .bytes),
            (.variableMember, .bytes):
            try charge(try extent(of: value).reading * 2)
        default: return
        }
    }

    /// Charges for a comparison by rules that read each side once and have no loops in loops:
    /// counting afterwards will do.
    func charge(_ judged: Judgement) throws(EvaluationError) {
        let left = try extent(of: judged.left)
        let right = try extent(of: judged.right)
        // A list of the record is compared with a constant, element by element.
        try charge(Self.comparison + left.reading + left.collections * right.reading)
    }
}

private extension RecordPredicate.Comparison {
    /// Whether it compares texts in another form than the one in which they are.
    var foldsTexts: Bool {
        switch comparator {
        case .beginsWith, .endsWith, .contains, .like, .tokenMatches: true
        // Their order is that of their composed forms.
        case .less, .lessOrEqual, .greater, .greaterOrEqual, .between: true
        default: options.folds
        }
    }
}

private extension FieldValue {
    /// Whether it is a text that is not all ASCII.
    var isForeignText: Bool {
        if case .string(let text) = self { text.utf8.contains { $0 >= 0x80 } } else { false }
    }
}

extension PreparedComparison {
    /// Whether a pattern of LIKE is made ready for each text.
    var compilesPattern: Bool { source.comparator == .like && pattern == nil }

    /// Whether what the right side asks for has been composed, folded and made ready before.
    var isPrepared: Bool { needle != nil || pattern != nil || words != nil }

    /// Whether the left side is `ANYKEY`, each of whose values is compared.
    var isOverAnyKey: Bool {
        if case .anyKey = left { true } else { false }
    }
}
