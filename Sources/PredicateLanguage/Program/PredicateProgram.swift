import RelayModel

/// A predicate compiled to a flat list of steps.
///
/// Each step has two targets, one for a true comparison and one for a false one. The jumps express
/// AND, OR and NOT.
///
/// The evaluator defines the result. A step only decides about the kinds of values that it knows.
/// It leaves all other cases, including all errors, to the evaluator.
final class PredicateProgram: Sendable {
    private let parts: ProgramParts
    /// The index of the first step, or an end.
    private let entry: Int32

    init(_ parts: ProgramParts, entry: Int32) {
        self.parts = parts
        self.entry = entry
    }

    /// Runs the program on a record.
    @inline(__always)
    func outcome(
        on source: some FieldSource, variables: RecordFields?, now: Timestamp?
    ) -> PredicateOutcome {
        var at = entry
        while at >= 0 {
            let step = parts.steps[Int(at)]
            var verdict = quickVerdict(of: step, on: source)
            if verdict == .unsure { verdict = fullVerdict(of: step, on: source) }
            switch verdict {
            case .yes: at = step.onTrue
            case .no: at = step.onFalse
            case .unsure:
                do throws(EvaluationError) {
                    at = try evaluate(step, source.fields, variables, now)
                } catch {
                    return .error(error)
                }
            }
        }
        return at == ProgramStep.end.holds ? .true : .false
    }

    /// Returns the result of the most frequent steps for the kinds of values they are made for.
    ///
    /// The values are not copied.
    @inline(__always)
    private func quickVerdict(
        of step: ProgramStep, on source: some FieldSource
    ) -> ProgramVerdict {
        guard step.takesScalars else { return .unsure }
        switch step.test {
        case .integer(let wanted, let order):
            if case .integer(let number)? = source.value(at: step.place, parts.paths) {
                return order.accepts(number, wanted)
            }
        case .double(let wanted, let order):
            if case .double(let number)? = source.value(at: step.place, parts.paths) {
                return order.accepts(number, wanted)
            }
        case .plainText(let index, let order):
            if case .string(let text)? = source.value(at: step.place, parts.paths) {
                return ProgramVerdict(
                    (parts.plainTexts[Int(index)] == text) == order.contains(.equal))
            }
        default: break
        }
        return .unsure
    }

    /// Returns the result of a step without the evaluator, or `unsure`.
    @inline(never)
    private func fullVerdict(
        of step: ProgramStep, on source: some FieldSource
    ) -> ProgramVerdict {
        if case .formula(let formula, let order) = step.test {
            return parts.formulas[Int(formula)].judge(order) { source.value(at: $0, parts.paths) }
        }
        guard step.place >= 0, let value = source.value(at: step.place, parts.paths) else {
            return .unsure
        }
        return judge(step, value)
    }

    /// Evaluates a comparison with the evaluator, and returns the next step.
    @inline(never)
    private func evaluate(
        _ step: ProgramStep, _ fields: RecordFields, _ variables: RecordFields?, _ now: Timestamp?
    ) throws(EvaluationError) -> Int32 {
        var evaluation = Evaluation(
            record: .map(fields), variables: variables ?? [:], now: now)
        let holds = try evaluation.holds(parts.comparisons[Int(step.comparison)])
        return holds ? step.onTrue : step.onFalse
    }

    // MARK: One step

    @inline(__always)
    private func judge(_ step: ProgramStep, _ value: FieldValue) -> ProgramVerdict {
        switch step.spread {
        case .whole: judge(step.test, value)
        case .anyOrItself:
            if case .list(let values) = value {
                judge(step.test, any: values)
            } else {
                judge(step.test, value)
            }
        case .any, .all, .none: judge(step, quantified: value)
        }
    }

    private func judge(_ step: ProgramStep, quantified value: FieldValue) -> ProgramVerdict {
        switch value {
        case .null: return ProgramVerdict(step.spread != .any)
        case .list(let values):
            if step.spread == .any { return judge(step.test, any: values) }
            let isAll = step.spread == .all
            for value in values {
                switch judge(step.test, value) {
                case .unsure: return .unsure
                case .yes: if !isAll { return .no }
                case .no: if isAll { return .no }
                }
            }
            return .yes
        default: return .unsure
        }
    }

    private func judge(_ test: ProgramTest, any values: [FieldValue]) -> ProgramVerdict {
        for value in values {
            switch judge(test, value) {
            case .unsure: return .unsure
            case .yes: return .yes
            case .no: continue
            }
        }
        return .no
    }

    @inline(__always)
    private func judge(_ test: ProgramTest, _ value: FieldValue) -> ProgramVerdict {
        switch test {
        case .evaluated, .formula: return .unsure
        case .integer(let wanted, let order):
            if case .integer(let number) = value { return order.accepts(number, wanted) }
            return judge(.integer(wanted), order, value)
        case .double(let wanted, let order):
            if case .double(let number) = value { return order.accepts(number, wanted) }
            return judge(.double(wanted), order, value)
        case .integers(let lower, let upper):
            if case .integer(let number) = value {
                return ProgramVerdict(lower <= number && number <= upper)
            }
            return judge(.integer(lower), .integer(upper), value)
        case .doubles(let lower, let upper):
            if case .double(let number) = value {
                return ProgramVerdict(lower <= number && number <= upper)
            }
            return judge(.double(lower), .double(upper), value)
        case .timestamp(let wanted, let order):
            switch value {
            case .timestamp(let moment): return order.accepts(moment, wanted)
            case .null: return order.onMissing
            default: return .unsure
            }
        case .empty(let order): return Self.judgeEmptiness(order, value)
        case .plainText, .text, .needle, .members, .pattern:
            return judge(textual: test, value)
        }
    }

    private static func judgeEmptiness(
        _ order: ProgramOrder, _ value: FieldValue
    ) -> ProgramVerdict {
        switch value {
        case .null: ProgramVerdict(order.contains(.equal))
        case .list, .set, .map: .unsure
        default: ProgramVerdict(!order.contains(.equal))
        }
    }

    private func judge(
        _ wanted: Number, _ order: ProgramOrder, _ value: FieldValue
    ) -> ProgramVerdict {
        switch value {
        case .null: return order.onMissing
        case .integer(let number): return order.accepts(Number.order(.integer(number), wanted))
        case .double(let number): return order.accepts(Number.order(.double(number), wanted))
        case .bool(let flag) where order.contains(.countsBooleans):
            return order.accepts(Number.order(.integer(flag ? 1 : 0), wanted))
        default: return .unsure
        }
    }

    private func judge(
        _ lower: Number, _ upper: Number, _ value: FieldValue
    ) -> ProgramVerdict {
        let number: Number
        switch value {
        case .null: return .no
        case .integer(let integer): number = .integer(integer)
        case .double(let double): number = .double(double)
        default: return .unsure
        }
        guard let below = Number.order(lower, number), let above = Number.order(number, upper)
        else { return .no }
        return ProgramVerdict(below <= 0 && above <= 0)
    }

    @inline(__always)
    private func judge(textual test: ProgramTest, _ value: FieldValue) -> ProgramVerdict {
        switch (test, value) {
        case (.text(let index, let order), .string(let text)):
            let isEqual = parts.texts[Int(index)].isEqual(to: text)
            return ProgramVerdict(isEqual == order.contains(.equal))
        case (.plainText(let index, let order), .string(let text)):
            return ProgramVerdict((parts.plainTexts[Int(index)] == text) == order.contains(.equal))
        case (.text(_, let order), .null), (.plainText(_, let order), .null): return order.onMissing
        case (.needle(let index, let place), .string(let text)):
            return ProgramVerdict(parts.needles[Int(index)].isFound(in: text, at: place))
        case (.pattern(let index), .string(let text)):
            return parts.patterns[Int(index)].matches(text).map(ProgramVerdict.init) ?? .unsure
        case (.needle, .null), (.pattern, .null): return .no
        case (.members(let index), _):
            return parts.members[Int(index)].contains(value).map(ProgramVerdict.init) ?? .unsure
        default: return .unsure
        }
    }
}

/// The contents of a program.
struct ProgramParts: Sendable {
    var steps: [ProgramStep] = []
    /// The paths of the fields, by place.
    var paths: [FieldPath] = []
    /// The comparisons, prepared for the evaluator.
    var comparisons: [PreparedComparison] = []
    /// Constant texts that are compared as they are.
    var plainTexts: [String] = []
    /// Constant texts that are compared under options.
    var texts: [PreparedText] = []
    var needles: [TextNeedle] = []
    var members: [ConstantMembers] = []
    var patterns: [TextPattern] = []
    var formulas: [ProgramFormula] = []
}
