import Matching
import PredicateLanguage
package import RelayModel

/// What went wrong when a condition was judged on a change, for a human reader: the comparison with
/// its place in the condition and the values on both sides.
package struct EvaluationFault: Sendable, Hashable {
    /// The fault in words.
    package let says: String
    /// The comparison that had the error, or `nil` if no single comparison had it.
    package let comparison: JSONObject?

    /// Judges the change again.
    ///
    /// Returns `nil` if there is no error, or if the owner may not know of the change through the
    /// subscription.
    package init?(
        of subscription: Subscription, on change: RecordChange, appendedAt: Timestamp,
        trace: @escaping MissFinder.Trace
    ) {
        let moment = change.occurredAt ?? appendedAt
        guard change.mayTell(subscription),
            case .query(let query, _) = subscription.scope,
            let predicate = try? query.recordPredicate(
                implying: subscription.database.impliedOwner(subscription.owner))
        else { return nil }
        let judged = predicate.judged(change, at: moment)
        guard let trace = trace(judged.predicate, judged.fields, moment),
            case .error(let error) = trace.outcome
        else { return nil }
        let places = predicate.comparisonPlaces
        let numbers = ConditionDecision(of: predicate, judgedAs: judged.predicate, trace).numbers
        for (comparison, number) in zip(trace.comparisons, numbers) {
            guard case .error = comparison.outcome else { continue }
            let place = number.map { places[$0] }
            says =
                "\(comparison.reason(saying: "was", of: judged.fields)), in "
                + comparison.comparison.canonicalText
            var shown = comparison.shown(at: place, of: judged.fields)
            shown["leftKind"] = comparison.left.map { .string($0.kind) }
            shown["rightKind"] = comparison.right.map { .string($0.kind) }
            self.comparison = shown
            return
        }
        says = error.reason
        comparison = nil
    }
}

extension ComparisonTrace {
    /// The maximum number of bytes of a value that are shown.
    private static let mostBytes = 500

    /// Returns why the comparison had its outcome, with the fields that it read if it came to no
    /// value.
    func reason(saying verb: String, of fields: RecordFields) -> String {
        let read = RecordPredicate(.comparison(comparison)).fieldsRead ?? []
        return reason(saying: verb, reading: read, of: fields)
    }

    /// Returns the comparison as JSON, with its place in the canonical text.
    func shown(at place: Range<Int>?, of fields: RecordFields) -> JSONObject {
        let begun = cut(beyond: 4 * Self.mostBytes)
        var json = begun.json
        json["reason"] = .string(begun.reason(saying: "is", of: fields))
        for side in ["left", "right"] { json[side] = json[side].map(Self.bounded) }
        if let place {
            json["place"] = [
                "offset": .integer(Int64(place.lowerBound)),
                "length": .integer(Int64(place.count)),
            ]
        }
        return json
    }

    private static func bounded(_ value: JSONValue) -> JSONValue {
        let text = value.text
        return text.utf8.count <= mostBytes ? value : .string("\(text.prefix(200))…")
    }
}
