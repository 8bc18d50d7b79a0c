import RelayModel

/// The members of a result in their order, and which of them are shown.
///
/// A value that decides and does nothing: the engine, the tests and whoever comes back ask it the
/// same questions.
struct ResultMembers: Sendable {
    let order: ResultOrder
    let limit: LiveLimit?
    /// All members, ascending, also those that the limit cuts off.
    private(set) var all: [ResultMember] = []

    init(_ query: LiveQuery) {
        order = ResultOrder(query)
        limit = query.limit
    }

    /// Takes members over, in any order.
    mutating func load(_ records: some Sequence<LiveRecord>) {
        all = records.map(order.member).filter(order.admits).sorted(by: order.precedes)
    }

    /// The places of those that are shown.
    private func window(of count: Int) -> Range<Int> {
        switch limit {
        case nil: 0..<count
        case .first(let most): 0..<min(most, count)
        case .last(let most): max(0, count - most)..<count
        }
    }

    /// Those that are shown, in order.
    var shown: ArraySlice<ResultMember> { all[window(of: all.count)] }

    /// Where `member` stands, or would.
    private func place(of member: ResultMember) -> Int {
        var low = 0
        var high = all.count
        while low < high {
            let middle = (low + high) / 2
            if order.precedes(all[middle], member) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func index(of record: LiveRecord) -> Int? {
        let place = place(of: order.member(of: record))
        guard place < all.count, all[place].record.id == record.id else { return nil }
        return place
    }

    /// Whether it has this record, as it is given.
    func contains(_ record: LiveRecord) -> Bool { index(of: record) != nil }

    // MARK: A change

    /// Puts a record in the place of what it was.
    ///
    /// - Parameters:
    ///   - earlier: the record as it was, if it was a member.
    ///   - later: the record as it is, if it is one now.
    ///   - fate: why it comes, or goes.
    ///   - keys: the fields that are shown; a change that touches none of them, and not the order,
    ///     is not told.
    /// - Returns: what it did to what is shown: removed, added, changed, each in order.
    mutating func replace(
        _ earlier: LiveRecord?, by later: LiveRecord?, _ fate: LiveItem.Reason,
        showing keys: [String]?
    ) -> [LiveItem] {
        let old = earlier.flatMap(index)
        let new = later.map(order.member).flatMap { order.admits($0) ? $0 : nil }
        guard old != nil || new != nil else { return [] }
        let before = window(of: all.count)
        let edgeBefore = edge(of: before)
        let wasShown = old.map(before.contains) ?? false
        let formerValues = old.map { all[$0].values }
        if let old { all.remove(at: old) }
        var place: Int?
        if let new {
            let at = self.place(of: new)
            all.insert(new, at: at)
            place = at
        }
        let after = window(of: all.count)
        let isShown = place.map(after.contains) ?? false
        let id = (later ?? earlier)?.id

        // Of the others one at most is pushed out, or slides in: the one at the cut.
        var pushed: LiveItem?
        if let edgeBefore, edgeBefore.member.record.id != id {
            let now = Self.moved(edgeBefore.index, without: old, with: place)
            if !after.contains(now) {
                pushed = LiveItem(
                    operation: .removed, reason: .windowed, record: edgeBefore.member.record)
            }
        }
        var slid: LiveItem?
        if let edgeAfter = edge(of: after), edgeAfter.member.record.id != id {
            let then = Self.unmoved(edgeAfter.index, without: old, with: place)
            if !before.contains(then) {
                slid = item(.added, .windowed, at: edgeAfter.index, after)
            }
        }

        var items: [LiveItem] = []
        if wasShown, !isShown, let earlier {
            let reason = new == nil ? fate : .windowed
            items.append(LiveItem(operation: .removed, reason: reason, record: earlier))
        }
        if let pushed { items.append(pushed) }
        if !wasShown, isShown, let place {
            items.append(item(.added, old == nil ? fate : .windowed, at: place, after))
        }
        if let slid { items.append(slid) }
        if wasShown, isShown, let place, let earlier, let later {
            let values = all[place].values
            let moved = formerValues.map { !order.areSame($0, values) } ?? false
            if moved || !later.isSame(as: earlier, keys) {
                var changed = item(.changed, nil, at: place, after)
                changed.moved = moved
                changed.before = earlier
                items.append(changed)
            }
        } else if wasShown, let index = items.firstIndex(where: { $0.record.id == id }) {
            items[index].before = earlier
        }
        return items
    }

    private func item(
        _ operation: LiveItem.Operation, _ reason: LiveItem.Reason?, at index: Int,
        _ window: Range<Int>
    ) -> LiveItem {
        LiveItem(
            operation: operation, reason: reason, record: all[index].record,
            previous: index > window.lowerBound ? all[index - 1].record.id : nil)
    }

    /// The member at the cut, where there is one.
    private func edge(of window: Range<Int>) -> (index: Int, member: ResultMember)? {
        guard let limit, !window.isEmpty else { return nil }
        switch limit {
        case .first: return (window.upperBound - 1, all[window.upperBound - 1])
        case .last: return (window.lowerBound, all[window.lowerBound])
        }
    }

    /// Where what stood at `index` stands after one is taken out and one put in.
    private static func moved(_ index: Int, without old: Int?, with new: Int?) -> Int {
        var index = index
        if let old, old < index { index -= 1 }
        if let new, new <= index { index += 1 }
        return index
    }

    /// Where what stands at `index` stood before one was taken out and one put in.
    private static func unmoved(_ index: Int, without old: Int?, with new: Int?) -> Int {
        var index = index
        if let new, new < index { index -= 1 }
        if let old, old <= index { index += 1 }
        return index
    }

    // MARK: Coming back

    /// What has become of what was shown to somebody who comes back.
    ///
    /// - Parameters:
    ///   - touched: the records that were changed since, as they were members then; `nil` for those
    ///     that were none.
    ///   - keys: the fields that are shown.
    /// - Returns: Removed, added, changed, each in order.
    /// - Complexity: That of sorting what was touched, and linear in the members.
    func difference(since touched: [RecordID: LiveRecord?], showing keys: [String]?) -> [LiveItem] {
        var then = all.filter { touched[$0.record.id] == nil }
        let earlier = touched.values.compactMap { $0.map(order.member) }.filter(order.admits)
        then = Self.merged(then, earlier.sorted(by: order.precedes), order)
        var past = ResultMembers(order: order, limit: limit)
        past.all = then
        var shownThen: [RecordID: ResultMember] = [:]
        for member in past.shown { shownThen[member.record.id] = member }
        let window = window(of: all.count)
        var added: [LiveItem] = []
        var changed: [LiveItem] = []
        var shownNow: Set<RecordID> = []
        for index in window {
            let member = all[index]
            let id = member.record.id
            shownNow.insert(id)
            guard let former = shownThen[id] else {
                let wasMember = touched[id].map { $0 != nil } ?? true
                let reason: LiveItem.Reason = wasMember ? .windowed : .entered
                added.append(item(.added, reason, at: index, window))
                continue
            }
            guard touched[id] != nil else { continue }
            let moved = !order.areSame(former.values, member.values)
            guard moved || !member.record.isSame(as: former.record, keys) else { continue }
            var item = item(.changed, nil, at: index, window)
            item.moved = moved
            item.before = former.record
            changed.append(item)
        }
        let members = Set(
            touched.keys.filter { id in shownThen[id] != nil && !isMember(id, shownNow) })
        let removed = past.shown.filter { !shownNow.contains($0.record.id) }.map { member in
            LiveItem(
                operation: .removed,
                reason: members.contains(member.record.id) ? .left : .windowed,
                record: member.record, before: member.record)
        }
        return removed + added + changed
    }

    private func isMember(_ id: RecordID, _ shownNow: Set<RecordID>) -> Bool {
        shownNow.contains(id) || limit != nil && all.contains { $0.record.id == id }
    }

    private init(order: ResultOrder, limit: LiveLimit?) {
        self.order = order
        self.limit = limit
    }

    private static func merged(
        _ left: [ResultMember], _ right: [ResultMember], _ order: ResultOrder
    ) -> [ResultMember] {
        guard !right.isEmpty else { return left }
        var merged: [ResultMember] = []
        merged.reserveCapacity(left.count + right.count)
        var rest = right[...]
        for member in left {
            while let next = rest.first, order.precedes(next, member) {
                merged.append(next)
                rest.removeFirst()
            }
            merged.append(member)
        }
        return merged + rest
    }
}
