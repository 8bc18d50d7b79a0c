import RelayModel

/// A comparison under the rules of a dialect that judges otherwise than NSPredicate, made ready.
///
/// It is an object, because the evaluator looks for one at each comparison, and looking whether
/// there is a value of unknown size takes as long as comparing two numbers.
protocol ForeignComparison: AnyObject, Sendable {
    /// Whether it holds for the record of an evaluation, and what its two sides were.
    func judge(in evaluation: Evaluation) throws(EvaluationError) -> Judgement
}

/// What came of a comparison, and what was compared.
typealias Judgement = (holds: Bool, left: FieldValue, right: FieldValue)

/// What preparing a predicate needs beside the predicate.
///
/// The evaluator knows NSPredicate's rules only. The dialects that have rules of their own hand
/// them in, so that it need not look at any of them.
struct Preparation: Sendable {
    /// Makes a comparison of another dialect ready; `nil` under NSPredicate's rules.
    let foreign: @Sendable (RecordPredicate.Comparison) -> (any ForeignComparison)?
    /// What compiles the patterns of MATCHES.
    let engine: any RegularExpressionEngine
}
