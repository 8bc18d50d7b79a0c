import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage
import Synchronization

/// The condition of a query, prepared for kept records.
struct RecordCondition: Sendable {
    private let prepared: PreparedPredicate
    /// The fields that it reads; `nil` for the whole record.
    private let reads: Set<String>?
    private let forms: KnownForms

    /// Prepares a condition that has been checked.
    ///
    /// - Throws: `PredicateError` for a pattern that cannot be used.
    init(_ condition: RecordPredicate) throws(PredicateError) {
        prepared = try PreparedPredicate(condition)
        reads = condition.fieldsRead
        forms = KnownForms(of: condition)
    }

    /// The number of prepared forms for incomplete records.
    var keptForms: Int { forms.count }

    /// Returns whether a record satisfies the condition at the moment `now`.
    ///
    /// A field that no database ever sent is unknown and not nil. A comparison that reads it fails,
    /// and so does its negation, as for subscriptions (docs/firing-rules.md, rule 25).
    func holds(for record: ShadowRecord, at now: Timestamp) -> Bool {
        let fields = record.judgedFields
        guard record.isPartial, reads?.isSubset(of: fields.keys) != true else {
            return prepared.evaluate(on: fields, now: now) == .true
        }
        // Known fields that the condition does not read make no difference.
        let known = reads?.intersection(fields.keys) ?? Set(fields.keys)
        return forms.form(knowing: known)?.evaluate(on: fields, now: now) == .true
    }
}

/// The forms of one condition for records of which only some fields are known.
///
/// Each form is prepared once, because the incomplete records of a table mostly lack the same
/// fields.
final class KnownForms: Sendable {
    /// The number of forms that are kept; records may lack any fields, and forms beyond that number
    /// are prepared for each record.
    static let mostKept = 64

    private let condition: RecordPredicate
    private let kept = Mutex<[Set<String>: PreparedPredicate]>([:])

    init(of condition: RecordPredicate) {
        self.condition = condition
    }

    /// The number of forms that are kept.
    var count: Int { kept.withLock { $0.count } }

    /// Returns the condition for records of which only `fields` are known; `nil` if it cannot be
    /// prepared.
    func form(knowing fields: Set<String>) -> PreparedPredicate? {
        if let form = kept.withLock({ $0[fields] }) { return form }
        guard let form = try? PreparedPredicate(checked: condition.knowing(fields)) else {
            return nil
        }
        kept.withLock { kept in
            if kept.count < Self.mostKept { kept[fields] = form }
        }
        return form
    }
}
