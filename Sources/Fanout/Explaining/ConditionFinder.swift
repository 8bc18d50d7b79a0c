import Matching
import PredicateLanguage
import RelayModel

/// Finds the comparisons by which a condition fails on a change, for people.
///
/// Pure.
struct ConditionFinder: Sendable {
    private let moment: Timestamp
    private let trace: MissFinder.Trace

    init(at moment: Timestamp, trace: @escaping MissFinder.Trace) {
        self.moment = moment
        self.trace = trace
    }

    /// The comparisons of a whole condition that fail; none if it holds.
    func failures(of predicate: RecordPredicate, on change: RecordChange) -> [FailedComparison] {
        // What is tied together by variables is judged as one.
        predicate.bindsVariables
            ? alone(predicate.root, change) : failures(of: predicate.root, on: change)
    }

    /// The comparisons that fail: of an AND all, of an OR those of the part with the fewest.
    func failures(
        of node: RecordPredicate.Node, on change: RecordChange
    ) -> [FailedComparison] {
        failures(of: node, on: change, within: 0)
    }

    /// The same of a part that stands within so many NOTs.
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

    /// A NOT within so many others is told and not gone into: each is judged as a whole, with all
    /// that it has inside.
    private static let deepest = 8

    /// A NOT that fails is told as a whole, and what else inside it would have to come out
    /// otherwise is counted.
    private func failures(
        ofNot inner: RecordPredicate.Node, in whole: RecordPredicate.Node, _ change: RecordChange,
        within depth: Int
    ) -> [FailedComparison] {
        let told = alone(whole, change)
        guard !told.isEmpty, depth < Self.deepest else { return told }
        return told + hindrances(in: inner, change, within: depth).dropFirst()
    }

    /// The comparisons that keep a part under a NOT from failing: of an OR those of all parts that
    /// hold, of an AND those of the part with the fewest.
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
        // What decided was not known, if only because something else is not.
        let parts = decision.unknown.map { RecordPredicate(.comparison($0)) }
        let read = (parts.isEmpty ? [predicate] : parts).flatMap { $0.fieldsRead ?? [] }
        let unknown = Set(read).filter { judged.fields[$0] == nil }.sorted()
        return [FailedComparison(asked: asked, .unknown(unknown))]
    }
}

/// A part of a condition that did not hold.
struct FailedComparison: Sendable, Hashable {
    /// Why it did not.
    enum Fault: Sendable, Hashable {
        /// It holds for nothing.
        case holdsForNothing
        /// The change does not show the record at all.
        case noRecord
        /// It cannot be evaluated.
        case unevaluable
        /// These fields are not known.
        case unknown([String])
        /// This came out.
        case compared(ComparisonTrace)
    }

    /// What is asked, as canonical text.
    let asked: String
    /// Why it did not hold.
    let fault: Fault
    /// The record that was compared, as far as it is known.
    private let fields: RecordFields

    init(asked: String, _ fault: Fault, of fields: RecordFields = [:]) {
        self.asked = asked
        self.fault = fault
        self.fields = fields
    }

    /// As it is said of what happens now.
    var text: String {
        let asks = "asks for \(Self.shortened(asked))"
        return switch fault {
        case .holdsForNothing: "its condition holds for nothing"
        case .noRecord: "it does not show the record, \(asks)"
        case .unevaluable: "it cannot be evaluated, \(asks)"
        case .unknown: "it does not show what is compared, \(asks)"
        case .compared(let trace): "\(trace.plainReason(saying: "is", of: fields)), \(asks)"
        }
    }

    /// As it is said of what happened: "price was 120, and the condition asks for price < 100".
    var pastText: String {
        let asks = "and the condition asks for \(Self.shortened(asked))"
        return switch fault {
        case .holdsForNothing: "the condition holds for nothing"
        case .noRecord: "the change does not show the record, \(asks)"
        case .unevaluable: "the condition cannot be evaluated, \(asks)"
        case .unknown(let fields):
            "the change does not show "
                + "\(fields.isEmpty ? "what is compared" : fields.andList), \(asks)"
        case .compared(let trace): "\(trace.plainReason(saying: "was", of: fields)), \(asks)"
        }
    }

    /// By scalars: one letter may have any number of them.
    private static func shortened(_ text: String) -> String {
        let beginning = text.unicodeScalars.prefix(121)
        guard beginning.count > 120 else { return text }
        return String(String.UnicodeScalarView(beginning.prefix(117))) + "…"
    }
}

private extension ComparisonTrace {
    /// Why it failed: the value, or that it is missing or of another kind than what it is compared
    /// with.
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
    /// Whether it is one value of a kind that is compared with its own kind only; truth values are
    /// numbers to most.
    var isScalar: Bool {
        switch self {
        case .null, .bool, .list, .set, .map: false
        default: true
        }
    }
}
