import RelayModel

/// What is coalesced of the changes that are read together.
struct Coalescing {
    private struct Place: Hashable {
        let group: UInt32
        let record: RecordID
    }

    /// Where the last change of a record stands among the frames.
    private var last: [Place: Int] = [:]
    /// The results that were changed.
    private(set) var results: [UInt32: LiveContainer] = [:]

    /// Has a change of a record take the place of the one before it.
    mutating func replace(
        _ record: RecordID, in group: LiveGroup, by index: Int, _ frames: inout [LiveGroupFrame]
    ) {
        let place = Place(group: group.number, record: record)
        guard let former = last.updateValue(index, forKey: place) else { return }
        if group.ended.isEmpty {
            frames[former] = LiveGroupFrame(group.number, nil)
        } else {
            // Whose queries have ended with it are told nothing behind it.
            frames[former].except.formUnion(group.clients.subtracting(group.ended))
        }
    }

    /// Notes that a record of a result was changed, as it was a member before, why it comes or goes
    /// by that, and what that did to the result.
    mutating func note(
        _ record: RecordID, _ earlier: LiveRecord?, _ fate: LiveFate, _ items: [LiveItem],
        in group: LiveGroup, of container: LiveContainer
    ) {
        group.onlyItems = group.touched.isEmpty ? items : nil
        if group.touched[record] == nil { group.touched.updateValue(earlier, forKey: record) }
        group.fates[record] = group.fates[record]?.followed(by: fate) ?? fate
        results[group.number] = container
    }
}

extension LiveEngine {
    /// Writes what has become of the results that coalesce.
    func finishCoalescing() {
        let coalesced = coalescing
        coalescing = Coalescing()
        for (number, container) in coalesced.results.sorted(by: { $0.key < $1.key }) {
            guard let group = container.groups[number], let members = group.members else {
                continue
            }
            // Most often one change is read at a time, and to go through all members for each would
            // hold up everybody.
            let items =
                group.onlyItems
                ?? members.difference(
                    since: group.touched, group.fates, showing: group.query.desiredKeys)
            group.onlyItems = nil
            group.touched.removeAll()
            group.fates.removeAll()
            // It is written as of one change, and counts as that.
            if !group.clients.isEmpty, !items.isEmpty, let user = admit(group),
                let told = told(LiveItems(items), of: group, by: nil)
            {
                append(told, for: user)
            }
        }
        written = WrittenRecords()
        endRefused()
    }
}
