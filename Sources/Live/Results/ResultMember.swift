import RelayModel

/// A record in a result, with the values by which it is sorted.
struct ResultMember: Sendable {
    let record: LiveRecord
    let values: [FieldValue]

    init(_ record: LiveRecord, _ order: [LiveSortKey]) {
        self.record = record
        values = order.map { record.value(of: $0) }
    }
}

/// The order of a result: strict and total, because the key decides between records that are alike.
struct ResultOrder: Sendable {
    let keys: [LiveSortKey]
    let start: LiveBound?
    let end: LiveBound?

    init(_ query: LiveQuery) {
        keys = query.order
        start = query.start
        end = query.end
    }

    /// Whether `left` comes before `right`.
    ///
    /// The key goes in the direction of the last order, so that descending is the exact reverse.
    func precedes(_ left: ResultMember, _ right: ResultMember) -> Bool {
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

    /// Whether a record lies within the bounds, in the direction of the order.
    func admits(_ member: ResultMember) -> Bool {
        guard let value = member.values.first, let key = keys.first else { return true }
        func stands(_ bound: LiveBound) -> RecordOrder.Outcome {
            let outcome = RecordOrder.compare(value, bound.value)
            guard !key.isAscending, outcome != .same else { return outcome }
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
