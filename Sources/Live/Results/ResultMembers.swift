import Platform
import RelayModel

/// The members of a result in their order, and which of them are shown.
///
/// This is a pure value: the engine, the tests and the code for returning clients use the same
/// rules.
struct ResultMembers: Sendable {
    let order: ResultOrder
    let limit: LiveLimit?
    /// All members, ascending, including those that the limit cuts off.
    private(set) var all: [ResultMember] = []

    /// Creates the empty result of a query; `order`, if given, is the order of that query.
    init(_ query: LiveQuery, by order: ResultOrder? = nil) {
        self.order = order ?? ResultOrder(query)
        limit = query.limit
    }

    /// Replaces the members with records, given in any order.
    mutating func load(_ records: some Sequence<LiveRecord>) {
        load(records.map(order.member))
    }

    /// Replaces the members with members that were made by this order, or one with the same basis.
    mutating func load(_ members: [ResultMember]) {
        all = members.filter(order.admits).sorted(by: order.precedes)
    }

    /// Returns the indices of the shown members, out of `count` members.
    private func window(of count: Int) -> Range<Int> {
        switch limit {
        case nil: 0..<count
        case .first(let most): 0..<min(most, count)
        case .last(let most): max(0, count - most)..<count
        }
    }

    /// The shown members, in order.
    var shown: ArraySlice<ResultMember> { all[window(of: all.count)] }

    /// Prefetches the members that a binary search looks at first into the processor's cache.
    func fetch() {
        unsafe all.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            // The array's header with its count lies in front of the elements.
            unsafe prefetch(start - 32, lines: 10)
        }
    }

    /// Returns the index of `member`, or the index at which it would be inserted.
    private func place(of member: ResultMember) -> Int {
        var low = 0
        var high = all.count
        while low < high {
            let middle = (low + high) / 2
            // Copying a member changes the reference count of a record that is in no cache, which
            // takes longer than everything else here. The prefix nearly always suffices.
            let prefix = all[middle].prefix
            let isBefore =
                prefix == member.prefix
                ? order.precedes(all[middle], member)
                : order.stands(prefix, before: member.prefix)
            if isBefore { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func index(of member: ResultMember) -> Int? {
        let place = place(of: member)
        guard place < all.count else { return nil }
        if all[place].record === member.record { return place }
        return all[place].record.id == member.record.id ? place : nil
    }

    // MARK: A change

    /// The effect of a change of a record on a result.
    struct Outcome {
        /// The effect on what is shown; `nil` if there is none.
        var items: LiveItems?
        /// Whether the record is a member after the change.
        var isMember = false
    }

    /// The effects on what is shown: on the changed record, and on the one at the cut.
    private struct Done {
        var first: LiveItem?
        var second: LiveItem?

        mutating func append(_ item: LiveItem) {
            assert(second == nil)
            if first == nil { first = item } else { second = item }
        }
    }

    /// Replaces a record by its new state.
    ///
    /// - Parameters:
    ///   - step: The record before and after the change.
    ///   - wasMember: Whether the record was a member before, without regard to bounds.
    ///   - fits: Whether the record is a member now, without regard to bounds.
    ///   - fate: The reasons for entering and leaving.
    ///   - keys: The fields that are shown. A change that alters none of them, and not the order,
    ///     has no effect on what is shown.
    /// - Returns: The effect, and whether the record is a member now.
    /// - Complexity: Logarithmic in the members, and linear in the members behind it, which move in
    ///   memory.
    mutating func replace(
        in step: inout RecordStep, wasMember: Bool, fits: Bool, _ fate: LiveFate,
        showing keys: [String]?
    ) -> Outcome {
        let sorted = step.sorted(by: order)
        let old: Int? =
            if wasMember, let earlier = sorted.earlier { index(of: earlier) } else { nil }
        let new = fits ? sorted.later.flatMap { order.admits($0) ? $0 : nil } : nil
        guard old != nil || new != nil else { return Outcome() }
        let before = window(of: all.count)
        let edgeBefore = edge(of: before)
        let wasShown = old.map(before.contains) ?? false
        let place = put(new, inPlaceOf: old, isMoved: sorted.isMoved)
        let after = window(of: all.count)
        let isShown = place.map(after.contains) ?? false
        var done = Done()

        if wasShown, !isShown, let earlier = step.earlier {
            let reason = new == nil ? fate.going : .windowed
            var removed = LiveItem(
                operation: .removed, reason: reason, record: earlier, before: earlier)
            removed.others = new == nil ? fate.readersAfter : nil
            done.append(removed)
        }
        // At most one other record is pushed out or slides in: the one at the cut.
        if let edgeBefore, edgeBefore != old {
            let now = Self.moved(edgeBefore, without: old, with: place)
            if !after.contains(now) {
                let record = all[now].record
                done.append(
                    LiveItem(
                        operation: .removed, reason: .windowed, record: record, before: record))
            }
        }
        if !wasShown, isShown, let place {
            let reason = old == nil ? fate.coming : .windowed
            var added = item(.added, reason, at: place, after)
            added.others = old == nil ? fate.readersBefore : nil
            done.append(added)
        }
        if let edgeAfter = edge(of: after), edgeAfter != place {
            let then = Self.unmoved(edgeAfter, without: old, with: place)
            if !before.contains(then) {
                done.append(item(.added, .windowed, at: edgeAfter, after))
            }
        }
        if wasShown, isShown, let place {
            let isSilent = !sorted.isMoved && step.isSame(keys)
            if !isSilent || step.changesReaders {
                var changed = item(.changed, nil, at: place, after)
                changed.moved = sorted.isMoved
                changed.before = step.earlier
                changed.isSilent = isSilent
                done.append(changed)
            }
        }
        let items = done.first.map { step.items($0, done.second) }
        return Outcome(items: items, isMember: new != nil)
    }

    /// Inserts `member` at its place, and removes the member at index `old`.
    ///
    /// - Returns: The index of the inserted member; `nil` if there is none.
    private mutating func put(
        _ member: ResultMember?, inPlaceOf old: Int?, isMoved: Bool
    ) -> Int? {
        if let old {
            // A member whose sort values are unchanged keeps its index.
            if let member, !isMoved {
                all[old] = member
                return old
            }
            all.remove(at: old)
        }
        guard let member else { return nil }
        let place = place(of: member)
        all.insert(member, at: place)
        return place
    }

    private func item(
        _ operation: LiveItem.Operation, _ reason: LiveItem.Reason?, at index: Int,
        _ window: Range<Int>
    ) -> LiveItem {
        LiveItem(
            operation: operation, reason: reason, record: all[index].record,
            neighbour: index > window.lowerBound ? all[index - 1].record : nil)
    }

    /// Returns the index of the member at the cut; `nil` without a limit.
    private func edge(of window: Range<Int>) -> Int? {
        guard let limit, !window.isEmpty else { return nil }
        switch limit {
        case .first: return window.upperBound - 1
        case .last: return window.lowerBound
        }
    }

    /// Returns the index after one removal and one insertion of the member that was at `index`.
    private static func moved(_ index: Int, without old: Int?, with new: Int?) -> Int {
        var index = index
        if let old, old < index { index -= 1 }
        if let new, new <= index { index += 1 }
        return index
    }

    /// Returns the index before one removal and one insertion of the member that is at `index`.
    private static func unmoved(_ index: Int, without old: Int?, with new: Int?) -> Int {
        var index = index
        if let new, new < index { index -= 1 }
        if let old, old <= index { index += 1 }
        return index
    }

    // MARK: Coming back

    /// Returns the difference between what is shown now and what was shown to a returning client.
    ///
    /// - Parameters:
    ///   - touched: The records that were changed since then, as they were as members then; `nil`
    ///     for those that were not members.
    ///   - fates: The reasons for entering and leaving.
    ///   - keys: The fields that are shown.
    /// - Returns: The items: removed, added, changed, each in order.
    /// - Complexity: Linear in the members, plus the cost of sorting the touched records.
    func difference(
        since touched: [RecordID: LiveRecord?], _ fates: [RecordID: LiveFate] = [:],
        showing keys: [String]?
    ) -> [LiveItem] {
        // The touched records that are still members.
        var kept: Set<RecordID> = []
        var then = all.filter { member in
            guard touched[member.record.id] != nil else { return true }
            kept.insert(member.record.id)
            return false
        }
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
                let fate = fates[id] ?? .entered
                let reason: LiveItem.Reason = wasMember ? .windowed : fate.coming
                var item = item(.added, reason, at: index, window)
                item.others = wasMember ? nil : fate.readersBefore
                added.append(item)
                continue
            }
            guard touched[id] != nil else { continue }
            let moved = !order.areSame(former.values, member.values)
            let isSilent = !moved && member.record.isSame(as: former.record, keys)
            let hasOthers = !RecordChange.isSame(member.record.readers, as: former.record.readers)
            guard !isSilent || hasOthers else { continue }
            var item = item(.changed, nil, at: index, window)
            item.isSilent = isSilent
            item.moved = moved
            item.before = former.record
            changed.append(item)
        }
        let removed = past.shown.filter { !shownNow.contains($0.record.id) }.map { member in
            let id = member.record.id
            // A record that is untouched or still a member has only moved out of the window.
            let isMember = touched[id] == nil || kept.contains(id)
            let fate = fates[id] ?? .entered
            var item = LiveItem(
                operation: .removed, reason: isMember ? .windowed : fate.going,
                record: member.record, before: member.record)
            item.others = isMember ? nil : fate.readersAfter
            return item
        }
        return removed + added + changed
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
