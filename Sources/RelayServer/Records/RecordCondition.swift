import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage
import Synchronization

/// The condition of a query, as it judges kept records.
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

    /// How many forms are kept that it takes for records of which not all is known.
    var keptForms: Int { forms.count }

    /// Whether a record satisfies it at the moment `now`.
    ///
    /// A field that no database ever sent is unknown and not nil: a comparison that reads it fails,
    /// and so does its contrary, as for subscriptions (docs/firing-rules.md, rule 25).
    func holds(for record: ShadowRecord, at now: Timestamp) -> Bool {
        let fields = record.judgedFields
        guard record.isPartial, reads?.isSubset(of: fields.keys) != true else {
            return prepared.evaluate(on: fields, now: now) == .true
        }
        // Which of the others are known makes no difference to it.
        let known = reads?.intersection(fields.keys) ?? Set(fields.keys)
        return forms.form(knowing: known)?.evaluate(on: fields, now: now) == .true
    }
}

/// What becomes of one condition where only some fields are known: each form is prepared once,
/// because the records of a table that sends parts mostly lack the same ones.
final class KnownForms: Sendable {
    /// Forms that are kept; of records that lack fields by chance there may be any number, and
    /// what is beyond is prepared for each record, as all of them were.
    static let mostKept = 64

    private let condition: RecordPredicate
    private let kept = Mutex<[Set<String>: PreparedPredicate]>([:])

    init(of condition: RecordPredicate) {
        self.condition = condition
    }

    /// How many forms are kept.
    var count: Int { kept.withLock { $0.count } }

    /// The condition as it is judged where only `fields` are known; `nil` if it cannot be prepared.
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
