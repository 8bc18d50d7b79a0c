import Matching
import PredicateLanguage
import RelayModel

/// Finds the comparisons that make a condition fail on a change, for a human reader.
///
/// Pure.
struct ConditionFinder: Sendable {
    private let moment: Timestamp
    private let trace: MissFinder.Trace

    init(at moment: Timestamp, trace: @escaping MissFinder.Trace) {
        self.moment = moment
        self.trace = trace
    }

    /// Returns the comparisons of a whole condition that fail.
    ///
    /// Returns none if the condition holds.
    func failures(of predicate: RecordPredicate, on change: RecordChange) -> [FailedComparison] {
        // Comparisons that share variables are judged together.
        predicate.bindsVariables
            ? alone(predicate.root, change) : failures(of: predicate.root, on: change)
    }

    /// Returns the comparisons that fail: for an AND all of them, for an OR those of the part with
    /// the fewest.
    func failures(
        of node: RecordPredicate.Node, on change: RecordChange
    ) -> [FailedComparison] {
        failures(of: node, on: change, within: 0)
    }

    /// Returns the comparisons that fail in a part that is inside `depth` NOTs.
    private func failures(
        of node: RecordPredicate.Node, on change: RecordChange, within depth: Int
    ) -> [FailedComparison] {
        switch node {
        case .constant(let holds):
            holds ? [] : [FailedComparison(asked: "", .holdsForNothing)]
        case .and(let parts): parts.flatMap { failures(of: $0, on: change, within: depth) }
        case .or(let parts):
            parts.map { failures(of: $0, on: change, within: depth) }
                .min { $0.count < $1.count } ?? []
        case .comparison: alone(node, change)
        case .not(let inner): failures(ofNot: inner, in: node, change, within: depth)
        }
    }

    /// The maximum depth of NOTs that are entered.
    ///
    /// Deeper ones are only reported as a whole: each is judged with everything inside it, so
    /// entering them costs too much.
    private static let deepest = 8

    /// Returns a failing NOT as a whole, followed by the other comparisons inside it that would
    /// have to change too.
    ///
    /// These are only counted.
    private func failures(
        ofNot inner: RecordPredicate.Node, in whole: RecordPredicate.Node, _ change: RecordChange,
        within depth: Int
    ) -> [FailedComparison] {
        let told = alone(whole, change)
        guard !told.isEmpty, depth < Self.deepest else { return told }
        return told + hindrances(in: inner, change, within: depth).dropFirst()
    }

    /// Returns the comparisons that keep a part inside a NOT from failing: for an OR those of all
    /// parts that hold, for an AND those of the part with the fewest.
    private func hindrances(
        in node: RecordPredicate.Node, _ change: RecordChange, within depth: Int
    ) -> [FailedComparison] {
        switch node {
        case .constant(let holds):
            holds ? [FailedComparison(asked: "", .holdsForNothing)] : []
        case .and(let parts):
            parts.map { hindrances(in: $0, change, within: depth) }
                .min { $0.count < $1.count } ?? []
        case .or(let parts): parts.flatMap { hindrances(in: $0, change, within: depth) }
        case .comparison: alone(.not(node), change)
        case .not(let inner): failures(of: inner, on: change, within: depth + 1)
        }
    }

    private func alone(
        _ node: RecordPredicate.Node, _ change: RecordChange
    ) -> [FailedComparison] {
        let predicate = RecordPredicate(node)
        let asked = predicate.canonicalText
        let judged = predicate.judged(change, at: moment)
        guard let trace = trace(judged.predicate, judged.fields, moment) else {
            return [FailedComparison(asked: asked, .unevaluable)]
        }
        guard trace.outcome != .true else { return [] }
        let decision = ConditionDecision(of: predicate, judgedAs: judged.predicate, trace)
        if let first = decision.decided.first {
            let compared = trace.comparisons[first]
            return [FailedComparison(asked: asked, .compared(compared), of: judged.fields)]
        }
        if change.judgedImage == nil { return [FailedComparison(asked: asked, .noRecord)] }
        // The deciding comparisons are unknown, or depend on something else that is unknown.
        let parts = decision.unknown.map { RecordPredicate(.comparison($0)) }
        let read = (parts.isEmpty ? [predicate] : parts).flatMap { $0.fieldsRead ?? [] }
        let unknown = Set(read).filter { judged.fields[$0] == nil }.sorted()
        return [FailedComparison(asked: asked, .unknown(unknown))]
    }
}

/// A part of a condition that does not hold.
struct FailedComparison: Sendable, Hashable {
    /// Why the part does not hold.
    enum Fault: Sendable, Hashable {
        /// No record can satisfy it.
        case holdsForNothing
        /// The change does not show the record at all.
        case noRecord
        /// It cannot be evaluated.
        case unevaluable
        /// The change does not show these fields.
        case unknown([String])
        /// The comparison was evaluated, with this trace.
        case compared(ComparisonTrace)
    }

    /// The canonical text of the part.
    let asked: String
    /// Why the part does not hold.
    let fault: Fault
    /// The fields of the record that was compared, as far as they are known.
    private let fields: RecordFields

    init(asked: String, _ fault: Fault, of fields: RecordFields = [:]) {
        self.asked = asked
        self.fault = fault
        self.fields = fields
    }

    /// The failure in the present tense.
    var text: String {
        let asks = "but the condition asks for \(Self.shortened(asked))"
        return switch fault {
        case .holdsForNothing: "its condition is never true"
        case .noRecord: "it does not show the record, \(asks)"
        case .unevaluable: "the condition cannot be evaluated: \(Self.shortened(asked))"
        case .unknown: "it does not show the fields that are compared, \(asks)"
        case .compared(let trace): "\(trace.plainReason(saying: "is", of: fields)), \(asks)"
        }
    }

    /// The failure in the past tense: "price was 120, and the condition asks for price < 100".
    var pastText: String {
        let asks = "and the condition asks for \(Self.shortened(asked))"
        return switch fault {
        case .holdsForNothing: "the condition is never true"
        case .noRecord: "the change does not show the record, \(asks)"
        case .unevaluable: "the condition cannot be evaluated: \(Self.shortened(asked))"
        case .unknown(let fields):
            "the change does not show "
                + "\(fields.isEmpty ? "the fields that are compared" : fields.andList), \(asks)"
        case .compared(let trace): "\(trace.plainReason(saying: "was", of: fields)), \(asks)"
        }
    }

    /// Cuts a text by scalars, because one character may have any number of them.
    private static func shortened(_ text: String) -> String {
        let beginning = text.unicodeScalars.prefix(121)
        guard beginning.count > 120 else { return text }
        return String(String.UnicodeScalarView(beginning.prefix(117))) + "…"
    }
}

private extension ComparisonTrace {
    /// Returns why the comparison failed: the value, or that the value is missing or of another
    /// kind than the one that it is compared with.
    func plainReason(saying verb: String, of fields: RecordFields) -> String {
        let sides = [(comparison.left, left, right), (comparison.right, right, left)]
        guard let (side, value, other) = sides.first(where: { $0.0.literal == nil }), let value
        else { return reason(saying: verb, of: fields) }
        if value.isNull { return "\(side.canonicalText) \(verb) missing" }
        if let other, other.isScalar, value.isScalar, other.kind != value.kind {
            return "\(side.canonicalText) \(verb) \(value.kind)"
        }
        return reason(saying: verb, of: fields)
    }
}

private extension FieldValue {
    /// Whether it is a single value that can only be compared with its own kind.
    ///
    /// Booleans are excluded, because most dialects treat them as numbers.
    var isScalar: Bool {
        switch self {
        case .null, .bool, .list, .set, .map: false
        default: true
        }
    }
}
