import RelayModel

/// A prepared comparison under the rules of a dialect that differ from NSPredicate's.
///
/// It is a class because the evaluator checks for one at each comparison. Checking for an
/// existential value of unknown size takes as long as comparing two numbers.
protocol ForeignComparison: AnyObject, Sendable {
    /// Returns whether the comparison holds for the record of an evaluation, and the values of its
    /// two sides.
    func judge(in evaluation: Evaluation) throws(EvaluationError) -> Judgement
}

/// The result of a comparison, and the values that were compared.
typealias Judgement = (holds: Bool, left: FieldValue, right: FieldValue)

/// The context for preparing a predicate.
///
/// The evaluator knows only NSPredicate's rules. Dialects with rules of their own pass them in
/// here, so the evaluator does not depend on them.
struct Preparation: Sendable {
    /// Prepares a comparison of another dialect, or returns `nil` under NSPredicate's rules.
    let foreign: @Sendable (RecordPredicate.Comparison) -> (any ForeignComparison)?
    /// The engine that compiles the patterns of MATCHES.
    let engine: any RegularExpressionEngine
}
