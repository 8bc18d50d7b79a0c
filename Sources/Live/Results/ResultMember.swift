import PredicateLanguage
import RelayModel

/// A record in a result, with the values by which it is sorted.
struct ResultMember: Sendable {
    let record: LiveRecord
    let values: [FieldValue]
}

/// The order of a result: strict and total, because the key decides between records that are alike.
struct ResultOrder: Sendable {
    private enum Rule {
        case keys([LiveSortKey], start: LiveBound?, end: LiveBound?)
        case firebase(FirebaseQuery)
    }

    private let rule: Rule

    init(_ query: LiveQuery) {
        rule =
            query.firebase.map { .firebase($0) }
            ?? .keys(query.order, start: query.start, end: query.end)
    }

    /// The record with what it is sorted by.
    func member(of record: LiveRecord) -> ResultMember {
        switch rule {
        case .keys(let keys, _, _):
            ResultMember(record: record, values: keys.map { record.value(of: $0.field) })
        case .firebase(let query):
            ResultMember(record: record, values: [record.value(of: query.ordering ?? .priority)])
        }
    }

    /// Whether `left` comes before `right`.
    ///
    /// The key goes in the direction of the last order, so that descending is the exact reverse.
    func precedes(_ left: ResultMember, _ right: ResultMember) -> Bool {
        switch rule {
        case .keys(let keys, _, _): Self.precedes(left, right, by: keys)
        case .firebase: Self.precedesAsChild(left, right)
        }
    }

    private static func precedes(
        _ left: ResultMember, _ right: ResultMember, by keys: [LiveSortKey]
    ) -> Bool {
        for (index, key) in keys.enumerated() {
            switch RecordOrder.compare(left.values[index], right.values[index]) {
            case .same: continue
            case .before: return key.isAscending
            case .after: return !key.isAscending
            }
        }
        let places = RecordOrder.places(left.record.id, right.record.id)
        return places == (keys.last?.isAscending ?? true ? .before : .after)
    }

    /// Firebase's order: by value, then by key.
    ///
    /// Zones come before keys, and two keys that read as one number and are as long stand by their
    /// texts.
    private static func precedesAsChild(_ left: ResultMember, _ right: ResultMember) -> Bool {
        let values = (FirebaseValue(left.values[0]), FirebaseValue(right.values[0]))
        if values.0 < values.1 { return true }
        if values.1 < values.0 { return false }
        let zones = RecordOrder.zones(left.record.id.zoneID, right.record.id.zoneID)
        guard zones == .same else { return zones == .before }
        let keys = (FirebaseKey(left.record.key), FirebaseKey(right.record.key))
        if keys.0 < keys.1 { return true }
        if keys.1 < keys.0 { return false }
        return RecordOrder.places(left.record.id, right.record.id) == .before
    }

    /// Whether two records stand at one place, but for their keys.
    func areSame(_ left: [FieldValue], _ right: [FieldValue]) -> Bool {
        zip(left, right).allSatisfy { one, other in
            switch rule {
            case .keys: RecordOrder.compare(one, other) == .same
            case .firebase: FirebaseValue(one) == FirebaseValue(other)
            }
        }
    }

    /// Whether a record lies within the bounds, in the direction of the order.
    func admits(_ member: ResultMember) -> Bool {
        guard let value = member.values.first else { return true }
        switch rule {
        case .keys(let keys, let start, let end):
            let isAscending = keys.first?.isAscending ?? true
            return Self.admits(value, isAscending: isAscending, from: start, to: end)
        case .firebase(let query): return query.admits(value, key: member.record.key)
        }
    }

    private static func admits(
        _ value: FieldValue, isAscending: Bool, from start: LiveBound?, to end: LiveBound?
    ) -> Bool {
        func stands(_ bound: LiveBound) -> RecordOrder.Outcome {
            let outcome = RecordOrder.compare(value, bound.value)
            guard !isAscending, outcome != .same else { return outcome }
            return outcome == .before ? .after : .before
        }
        if let start {
            let outcome = stands(start)
            if outcome == .before || outcome == .same && !start.isIncluded { return false }
        }
        if let end {
            let outcome = stands(end)
            if outcome == .after || outcome == .same && !end.isIncluded { return false }
        }
        return true
    }
}
