import PredicateLanguage
import RelayModel

/// A record in a result, with the values by which it is sorted.
struct ResultMember: Sendable {
    let record: LiveRecord
    let values: [FieldValue]
    /// A comparable prefix of the first value, which settles most comparisons.
    ///
    /// Values and records lie elsewhere in memory, and loading them takes longer than comparing.
    let prefix: SortPrefix
}

/// The order of a result; it is strict and total, because the key decides between equal records.
final class ResultOrder: Sendable {
    /// What an order sorts by; results with the same basis have the same sort values.
    enum Basis: Hashable {
        case fields([String])
        case firebase(FirebaseQuery.Ordering)
    }

    /// What this order sorts by.
    let basis: Basis
    private let keys: [LiveSortKey]
    private let start: LiveBound?
    private let end: LiveBound?
    private let firebase: FirebaseQuery?
    /// Whether small values of the first key come first.
    private let isAscending: Bool
    private let hasBounds: Bool

    init(_ query: LiveQuery) {
        keys = query.order
        start = query.start
        end = query.end
        firebase = query.firebase
        isAscending = query.order.first?.isAscending ?? true
        hasBounds = query.start != nil || query.end != nil || query.firebase != nil
        basis =
            query.firebase.map { .firebase($0.ordering ?? .priority) }
            ?? .fields(query.order.map(\.field))
    }

    /// Returns the record with its sort values.
    func member(of record: LiveRecord) -> ResultMember {
        let values = record.values(of: basis)
        let isPlain = firebase == nil
        return ResultMember(
            record: record, values: values,
            prefix: isPlain ? values.first.map(SortPrefix.init) ?? .none : .none)
    }

    /// Returns whether `left` comes before `right`.
    ///
    /// The record's key follows the direction of the last sort key, so that a descending order is
    /// the exact reverse of the ascending one.
    func precedes(_ left: ResultMember, _ right: ResultMember) -> Bool {
        if left.prefix != right.prefix { return stands(left.prefix, before: right.prefix) }
        if left.record === right.record { return false }
        return firebase == nil
            ? precedesByKeys(left, right) : Self.precedesAsChild(left, right)
    }

    /// Returns whether a member with prefix `left` precedes one with a different prefix `right`.
    func stands(_ left: SortPrefix, before right: SortPrefix) -> Bool {
        (left < right) == isAscending
    }

    private func precedesByKeys(_ left: ResultMember, _ right: ResultMember) -> Bool {
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

    /// Compares in Firebase's order: by value, then by key.
    ///
    /// Zones come before keys. Two keys of the same length that read as the same number are
    /// compared as texts.
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

    /// Returns whether two records have the same sort values; their keys are not compared.
    func areSame(_ left: [FieldValue], _ right: [FieldValue]) -> Bool {
        zip(left, right).allSatisfy { one, other in
            firebase == nil
                ? RecordOrder.compare(one, other) == .same
                : FirebaseValue(one) == FirebaseValue(other)
        }
    }

    /// Returns whether a record lies within the bounds, in the direction of the order.
    func admits(_ member: ResultMember) -> Bool {
        guard hasBounds, let value = member.values.first else { return true }
        if let firebase { return firebase.admits(value, key: member.record.key) }
        return Self.admits(value, isAscending: isAscending, from: start, to: end)
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
