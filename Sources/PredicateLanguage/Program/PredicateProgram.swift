import RelayModel

/// A predicate as a flat list of steps, each of which says where to go on when it holds and when
/// not: AND, OR and NOT are in the jumps.
///
/// The evaluator stays the truth. A step answers only for kinds of values that it knows, and
/// leaves every other case, all errors among them, to the evaluator.
final class PredicateProgram: Sendable {
    let steps: [ProgramStep]
    /// The first step, or an end.
    let entry: Int32
    /// The places of the fields.
    let paths: [FieldPath]
    /// The comparisons, as the evaluator wants them.
    let comparisons: [PreparedComparison]
    let texts: [PreparedText]
    let needles: [TextNeedle]
    let members: [ConstantMembers]
    let patterns: [RegularExpression]
    let formulas: [ProgramFormula]

    init(
        steps: [ProgramStep], entry: Int32, paths: [FieldPath], comparisons: [PreparedComparison],
        texts: [PreparedText], needles: [TextNeedle], members: [ConstantMembers],
        patterns: [RegularExpression], formulas: [ProgramFormula]
    ) {
        self.steps = steps
        self.entry = entry
        self.paths = paths
        self.comparisons = comparisons
        self.texts = texts
        self.needles = needles
        self.members = members
        self.patterns = patterns
        self.formulas = formulas
    }

    /// Runs the program on a record, looking fields up by name.
    func outcome(
        on fields: RecordFields, variables: RecordFields, now: Timestamp?
    ) -> PredicateOutcome {
        var known: Int32 = -1
        var value: FieldValue?
        var at = entry
        while at >= 0 {
            let step = steps[Int(at)]
            var verdict = ProgramVerdict.unsure
            if case .formula(let formula, let order) = step.test {
                verdict = formulas[Int(formula)].judge(order) { paths[$0].value(in: fields) }
            } else if step.place >= 0 {
                if step.place != known {
                    value = paths[Int(step.place)].value(in: fields)
                    known = step.place
                }
                if let value { verdict = judge(step, value) }
            }
            switch verdict {
            case .yes: at = step.onTrue
            case .no: at = step.onFalse
            case .unsure:
                do throws(EvaluationError) {
                    at = try evaluate(step, .map(fields), variables, now)
                } catch {
                    return .error(error)
                }
            }
        }
        return at == ProgramStep.end.holds ? .true : .false
    }

    /// Runs the program on a record whose values are in place.
    func outcome(
        on row: FieldRow, variables: RecordFields, now: Timestamp?
    ) -> PredicateOutcome {
        var at = entry
        while at >= 0 {
            let step = steps[Int(at)]
            let place = Int(step.place)
            var verdict = ProgramVerdict.unsure
            if case .formula(let formula, let order) = step.test {
                verdict = formulas[Int(formula)].judge(order) { value(at: $0, of: row) }
            } else if place >= 0, place < row.values.count {
                if let value = row.values[place] { verdict = judge(step, value) }
            } else if place >= 0, let value = paths[place].value(in: row.fields) {
                verdict = judge(step, value)
            }
            switch verdict {
            case .yes: at = step.onTrue
            case .no: at = step.onFalse
            case .unsure:
                do throws(EvaluationError) {
                    at = try evaluate(step, .map(row.fields), variables, now)
                } catch {
                    return .error(error)
                }
            }
        }
        return at == ProgramStep.end.holds ? .true : .false
    }

    private func value(at place: Int, of row: FieldRow) -> FieldValue? {
        place < row.values.count ? row.values[place] : paths[place].value(in: row.fields)
    }

    /// Lets the evaluator judge a comparison, and says where to go on.
    @inline(never)
    private func evaluate(
        _ step: ProgramStep, _ record: FieldValue, _ variables: RecordFields, _ now: Timestamp?
    ) throws(EvaluationError) -> Int32 {
        var evaluation = Evaluation(record: record, variables: variables, now: now)
        let holds = try evaluation.holds(comparisons[Int(step.comparison)])
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
        case .text, .needle, .members, .pattern: return judge(textual: test, value)
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
            let isEqual = texts[Int(index)].isEqual(to: text)
            return ProgramVerdict(isEqual == order.contains(.equal))
        case (.text(_, let order), .null): return order.onMissing
        case (.needle(let index, let place), .string(let text)):
            return ProgramVerdict(needles[Int(index)].isFound(in: text, at: place))
        case (.pattern(let index), .string(let text)):
            return ProgramVerdict(patterns[Int(index)].matchesWhole(text))
        case (.needle, .null), (.pattern, .null): return .no
        case (.members(let index), _):
            return members[Int(index)].contains(value).map(ProgramVerdict.init) ?? .unsure
        default: return .unsure
        }
    }
}
