import RelayModel

/// Compiles a prepared predicate to a ``PredicateProgram``.
///
/// It works from the end to the beginning, so that the targets of each step are known.
struct ProgramCompiler {
    private var layout: FieldLayout
    private var parts = ProgramParts()

    private init(layout: FieldLayout) {
        self.layout = layout
    }

    /// Compiles `root`, and adds its fields to `layout`.
    static func compile(_ root: PreparedNode, layout: inout FieldLayout) -> PredicateProgram {
        var compiler = ProgramCompiler(layout: layout)
        let entry = compiler.compile(root, ProgramStep.end.holds, ProgramStep.end.fails)
        layout = compiler.layout
        compiler.parts.paths = layout.paths
        return PredicateProgram(compiler.parts, entry: entry)
    }

    /// Compiles a node with the steps that follow a true and a false outcome.
    ///
    /// Returns the node's first step.
    private mutating func compile(
        _ node: PreparedNode, _ onTrue: Int32, _ onFalse: Int32
    ) -> Int32 {
        switch node {
        case .constant(let isTrue): return isTrue ? onTrue : onFalse
        case .not(let inner): return compile(inner, onFalse, onTrue)
        case .and(let nodes):
            var next = onTrue
            for node in nodes.reversed() { next = compile(node, next, onFalse) }
            return next
        case .or(let nodes):
            var next = onFalse
            for node in nodes.reversed() { next = compile(node, onTrue, next) }
            return next
        case .comparison(let comparison):
            parts.comparisons.append(comparison)
            var step = ProgramStep(
                test: .evaluated, spread: .whole, place: -1, onTrue: onTrue, onFalse: onFalse,
                comparison: Int32(parts.comparisons.count - 1))
            shape(&step, comparison)
            parts.steps.append(step)
            return Int32(parts.steps.count - 1)
        }
    }

    /// Gives a step a test, if there is one for its comparison.
    private mutating func shape(_ step: inout ProgramStep, _ comparison: PreparedComparison) {
        let source = comparison.source
        guard source.rules != .firebase, source.rightQuantifier == nil else { return }
        if case .path(let path) = source.left, let value = source.right.literal {
            guard let test = test(comparison, value) else { return }
            guard let spread = Self.spread(of: source), let place = place(of: path) else { return }
            step.test = test
            step.spread = spread
            step.place = place
        } else if source.quantifier == nil, source.rules != .minapp,
            case .path(let path) = source.right, let value = source.left.literal
        {
            guard let test = flippedTest(comparison, value), let place = place(of: path) else {
                return
            }
            step.test = test
            step.spread = Self.spread(of: source) ?? .whole
            step.place = place
        } else {
            shapeFormula(&step, comparison)
        }
    }

    private mutating func shapeFormula(
        _ step: inout ProgramStep, _ comparison: PreparedComparison
    ) {
        let source = comparison.source
        guard source.quantifier == nil, source.rules == .apple,
            let order = ProgramOrder(source.comparator, source.rules)
        else { return }
        var layout = layout
        let formula = ProgramFormula(comparison.left, comparison.right) { path in
            FieldPath(path).map { Int32(layout.place(of: $0)) }
        }
        guard let formula else { return }
        self.layout = layout
        parts.formulas.append(formula)
        step.test = .formula(Int32(parts.formulas.count - 1), order)
    }

    private mutating func place(of path: RecordPredicate.RecordPath) -> Int32? {
        FieldPath(path).map { Int32(layout.place(of: $0)) }
    }

    /// Returns how a comparison applies to the elements of a list, or `nil` if that depends on more
    /// than the value.
    private static func spread(of source: RecordPredicate.Comparison) -> ProgramSpread? {
        switch (source.rules, source.quantifier) {
        // Without a quantifier, two lists are compared element by element.
        case (.realm, nil):
            source.comparator == .between || source.comparator == .in ? .whole : .anyOrItself
        case (.apple, nil): .whole
        case (.minapp, nil): source.comparator == .notEqual ? .whole : .anyOrItself
        case (.apple, .any), (.realm, .any): source.comparator == .between ? nil : .any
        case (.apple, .all), (.realm, .all): .all
        case (.apple, RecordPredicate.Quantifier.none?),
            (.realm, RecordPredicate.Quantifier.none?):
            source.comparator == .between ? nil : ProgramSpread.none
        default: nil
        }
    }

    // MARK: Tests

    /// Returns the test of a field that is compared with a constant on its right.
    private mutating func test(
        _ comparison: PreparedComparison, _ value: FieldValue
    ) -> ProgramTest? {
        let source = comparison.source
        if let order = ProgramOrder(source.comparator, source.rules) {
            return test(order, value, source)
        }
        if source.rules == .minapp { return nil }
        switch (source.comparator, value) {
        case (.between, .list(let bounds)) where bounds.count == 2:
            return between(bounds[0], bounds[1])
        case (.beginsWith, .string(let text)): return needle(text, .start, source)
        case (.endsWith, .string(let text)): return needle(text, .end, source)
        case (.contains, .string(let text)): return needle(text, .anywhere, source)
        case (.in, .list), (.in, .set):
            guard let set = comparison.members else { return nil }
            parts.members.append(set)
            return .members(Int32(parts.members.count - 1))
        case (.like, .string(let pattern)) where source.rules == .apple:
            return like(pattern, comparison)
        case (.matches, .string):
            guard source.rules == .apple else { return nil }
            return pattern(comparison)
        default: return nil
        }
    }

    /// Returns the test of a field that is compared with a constant on its left.
    private mutating func flippedTest(
        _ comparison: PreparedComparison, _ value: FieldValue
    ) -> ProgramTest? {
        let source = comparison.source
        if let order = ProgramOrder(source.comparator, source.rules) {
            return test(order.flipped, value, source)
        }
        guard source.rules == .apple, source.comparator == .in, case .string(let text) = value
        else { return nil }
        return needle(text, .anywhere, source)
    }

    private mutating func test(
        _ order: ProgramOrder, _ value: FieldValue, _ source: RecordPredicate.Comparison
    ) -> ProgramTest? {
        switch value {
        case .integer(let number): return .integer(number, order)
        case .double(let number): return .double(number, order)
        case .timestamp(let moment): return .timestamp(moment, order)
        case .null: return order.isEquality ? .empty(order) : nil
        case .string(let text):
            guard order.isEquality, source.rules == .apple || !source.options.folds else {
                return nil
            }
            if source.rules == .apple, source.options.isEmpty { return plainText(text, order) }
            parts.texts.append(PreparedText(text, source.options, source.rules))
            return .text(Int32(parts.texts.count - 1), order)
        default: return nil
        }
    }

    private func between(_ lower: FieldValue, _ upper: FieldValue) -> ProgramTest? {
        switch (lower, upper) {
        case (.integer(let a), .integer(let b)): return .integers(a, b)
        case (.double(let a), .double(let b)): return .doubles(a, b)
        default: return nil
        }
    }

    private mutating func needle(
        _ text: String, _ place: TextNeedle.Place, _ source: RecordPredicate.Comparison
    ) -> ProgramTest? {
        switch source.rules {
        case .apple: parts.needles.append(TextNeedle(text, source.options))
        case .realm where !text.isEmpty && !source.options.folds:
            parts.needles.append(TextNeedle(text, .normalized))
        default: return nil
        }
        return .needle(Int32(parts.needles.count - 1), place)
    }

    /// Returns the test of a LIKE pattern.
    ///
    /// If the pattern is a plain text with stars only at its ends, it is a search for the text.
    private mutating func like(
        _ text: String, _ comparison: PreparedComparison
    ) -> ProgramTest? {
        let source = comparison.source
        guard source.options.isEmpty else { return pattern(comparison) }
        var inner = Substring(text)
        let hasStart = inner.first == "*"
        if hasStart { inner.removeFirst() }
        let hasEnd = inner.last == "*"
        if hasEnd { inner.removeLast() }
        guard !inner.isEmpty, !inner.unicodeScalars.contains(where: Self.patternSigns.contains)
        else { return pattern(comparison) }
        switch (hasStart, hasEnd) {
        case (true, true): return needle(String(inner), .anywhere, source)
        case (true, false): return needle(String(inner), .end, source)
        case (false, true): return needle(String(inner), .start, source)
        case (false, false):
            return plainText(String(inner), .equal)
        }
    }

    private mutating func plainText(_ text: String, _ order: ProgramOrder) -> ProgramTest {
        parts.plainTexts.append(text)
        return .plainText(Int32(parts.plainTexts.count - 1), order)
    }

    private static let patternSigns: Set<Unicode.Scalar> = ["*", "?", "\\"]

    private mutating func pattern(_ comparison: PreparedComparison) -> ProgramTest? {
        guard let pattern = comparison.pattern else { return nil }
        parts.patterns.append(pattern)
        return .pattern(Int32(parts.patterns.count - 1))
    }
}
