import Platform
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

    /// The members of a query's result, none yet; `order` is that of the query.
    init(_ query: LiveQuery, by order: ResultOrder? = nil) {
        self.order = order ?? ResultOrder(query)
        limit = query.limit
    }

    /// Takes members over, in any order.
    mutating func load(_ records: some Sequence<LiveRecord>) {
        load(records.map(order.member))
    }

    /// The same of records with what the order, or one like it, sorts by.
    mutating func load(_ members: [ResultMember]) {
        all = members.filter(order.admits).sorted(by: order.precedes)
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

    /// Has the processor fetch those among which a place is looked for.
    func fetch() {
        unsafe all.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            // In front of them stands how many there are.
            unsafe prefetch(start - 32, lines: 10)
        }
    }

    /// Where `member` stands, or would.
    private func place(of member: ResultMember) -> Int {
        var low = 0
        var high = all.count
        while low < high {
            let middle = (low + high) / 2
            // A copy of a member counts references to what no cache holds, which takes longer than
            // all else: nearly always its prefix says enough.
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

    /// What a change of a record has done to a result.
    struct Outcome {
        /// What it did to what is shown; `nil` if nothing.
        var items: LiveItems?
        /// Whether the record is a member now.
        var isMember = false
    }

    /// What was done to what is shown: to the record that changed, and to the one at the cut.
    private struct Done {
        var first: LiveItem?
        var second: LiveItem?

        mutating func append(_ item: LiveItem) {
            assert(second == nil)
            if first == nil { first = item } else { second = item }
        }
    }

    /// Puts a record in the place of what it was.
    ///
    /// - Parameters:
    ///   - step: the record as it was and as it is.
    ///   - wasMember: whether it was a member, bounds aside.
    ///   - fits: whether it is one now, bounds aside.
    ///   - fate: why it comes, or goes.
    ///   - keys: the fields that are shown; a change that touches none of them, and not the order,
    ///     is not told.
    /// - Returns: What it did, and whether the record is a member now.
    /// - Complexity: the logarithm of the members, and moving those behind it in memory.
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
            done.append(
                LiveItem(
                    operation: .removed, reason: reason, record: earlier, before: earlier))
        }
        // Of the others one at most is pushed out, or slides in: the one at the cut.
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
            done.append(item(.added, reason, at: place, after))
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

    /// Puts `member` where it belongs, and takes out what stood at `old`.
    ///
    /// - Returns: where it stands now.
    private mutating func put(
        _ member: ResultMember?, inPlaceOf old: Int?, isMoved: Bool
    ) -> Int? {
        if let old {
            // What sorts as before stands where it stood.
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

    /// Where the member at the cut stands, if there is one.
    private func edge(of window: Range<Int>) -> Int? {
        guard let limit, !window.isEmpty else { return nil }
        switch limit {
        case .first: return window.upperBound - 1
        case .last: return window.lowerBound
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
    ///   - fates: why they come, or go.
    ///   - keys: the fields that are shown.
    /// - Returns: Removed, added, changed, each in order.
    /// - Complexity: That of sorting what was touched, and linear in the members.
    func difference(
        since touched: [RecordID: LiveRecord?], _ fates: [RecordID: LiveFate] = [:],
        showing keys: [String]?
    ) -> [LiveItem] {
        // Those that were touched and are members still.
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
                added.append(item(.added, reason, at: index, window))
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
            // What was not touched, or is a member still, is only shown no more.
            let isMember = touched[id] == nil || kept.contains(id)
            return LiveItem(
                operation: .removed,
                reason: isMember ? .windowed : (fates[id] ?? .entered).going,
                record: member.record, before: member.record)
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
