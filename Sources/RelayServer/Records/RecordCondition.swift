import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// The condition of a query, as it judges kept records.
struct RecordCondition: Sendable {
    private let condition: RecordPredicate
    private let prepared: PreparedPredicate
    /// The fields that it reads; `nil` for the whole record.
    private let reads: Set<String>?

    /// Prepares a condition that has been checked.
    ///
    /// - Throws: `PredicateError` for a pattern that cannot be used.
    init(_ condition: RecordPredicate) throws(PredicateError) {
        self.condition = condition
        prepared = try PreparedPredicate(condition)
        reads = condition.fieldsRead
    }

    /// Whether a record satisfies it at the moment `now`.
    ///
    /// A field that no database ever sent is unknown and not nil: a comparison that reads it fails,
    /// and so does its contrary, as for subscriptions (docs/firing-rules.md, rule 25).
    func holds(for record: ShadowRecord, at now: Timestamp) -> Bool {
        let fields = record.judgedFields
        guard record.isPartial, reads?.isSubset(of: fields.keys) != true else {
            return prepared.evaluate(on: fields, now: now) == .true
        }
        let known = try? PreparedPredicate(checked: condition.knowing(fields.keys))
        return known?.evaluate(on: fields, now: now) == .true
    }
}
