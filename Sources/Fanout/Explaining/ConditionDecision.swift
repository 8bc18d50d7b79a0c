import PredicateLanguage

/// The comparisons that decided the outcome of a condition on one record, according to a trace.
///
/// For an AND that fails, these are the comparisons of the part that failed. For an OR that holds,
/// these are the comparisons of the part that held. Otherwise they are those of all parts. For a
/// NOT, they are those of its inner condition. An error decides alone. Pure.
struct ConditionDecision: Sendable, Equatable {
    /// The indices in the trace of the comparisons that decided, in ascending order.
    let decided: [Int]
    /// The comparisons that decided because the values that they read are unknown.
    let unknown: [RecordPredicate.Comparison]
    /// For each comparison of the trace, its number among all comparisons of the condition, whether
    /// reached or not.
    ///
    /// `nil` for comparisons inside another comparison.
    let numbers: [Int?]

    /// Follows the trace of `judged`, which is the condition with constants in place of its unknown
    /// parts.
    init(
        of condition: RecordPredicate, judgedAs judged: RecordPredicate, _ trace: EvaluationTrace
    ) {
        var walk = Walk(traced: trace.comparisons)
        let part = walk.part(condition.root, as: judged.root)
        decided = part.decided
        unknown = part.unknown
        numbers = walk.numbers
    }

    /// The outcome of a part of the condition.
    ///
    /// `holds` is `nil` if it is unknown.
    private struct Part {
        var holds: Bool?
        var decided: [Int] = []
        var unknown: [RecordPredicate.Comparison] = []
    }

    /// Repeats the evaluation, with the trace in place of the record.
    private struct Walk {
        let traced: [ComparisonTrace]
        /// The index of the next comparison of the trace.
        private var at = 0
        /// The number of the next comparison of the condition.
        private var number = 0
        private(set) var numbers: [Int?]

        init(traced: [ComparisonTrace]) {
            self.traced = traced
            numbers = Array(repeating: nil, count: traced.count)
        }

        mutating func part(
            _ node: RecordPredicate.Node, as judged: RecordPredicate.Node
        ) -> Part {
            switch (node, judged) {
            case (.constant(let holds), _): return Part(holds: holds)
            case (.comparison(let comparison), .constant(let holds)):
                number += 1
                return Part(holds: holds, unknown: [comparison])
            case (.comparison, .comparison): return comparison()
            case (.not(let inner), .not(let judged)):
                var part = part(inner, as: judged)
                part.holds = part.holds.map { !$0 }
                return part
            case (.and(let nodes), .and(let judged)):
                return parts(nodes, as: judged, endedBy: false)
            case (.or(let nodes), .or(let judged)):
                return parts(nodes, as: judged, endedBy: true)
            // Comparisons that share variables are judged as one constant if any part of them is
            // unknown.
            default: return Part(holds: nil)
            }
        }

        private mutating func parts(
            _ nodes: [RecordPredicate.Node], as judged: [RecordPredicate.Node],
            endedBy decisive: Bool
        ) -> Part {
            var all = Part(holds: !decisive)
            for (index, pair) in zip(nodes, judged).enumerated() {
                let part = part(pair.0, as: pair.1)
                guard part.holds == !decisive else {
                    for node in nodes[(index + 1)...] { number += node.comparisonCount }
                    return part
                }
                all.decided += part.decided
                all.unknown += part.unknown
            }
            return all
        }

        private mutating func comparison() -> Part {
            guard at < traced.count else { return Part(holds: nil) }
            let index = at
            numbers[index] = number
            number += 1
            at += 1
            while at < traced.count, traced[at].isNested { at += 1 }
            switch traced[index].outcome {
            case .true: return Part(holds: true, decided: [index])
            case .false: return Part(holds: false, decided: [index])
            case .error: return Part(holds: nil, decided: [index])
            }
        }
    }
}

private extension RecordPredicate.Node {
    /// The number of comparisons in the tree, not counting those inside another comparison.
    var comparisonCount: Int {
        switch self {
        case .constant: 0
        case .comparison: 1
        case .and(let nodes), .or(let nodes): nodes.reduce(0) { $0 + $1.comparisonCount }
        case .not(let inner): inner.comparisonCount
        }
    }
}
