import RelayModel

/// Coalesces the changes of one record that are read together.
struct Coalescing {
    private struct Place: Hashable {
        let group: UInt32
        let record: RecordID
    }

    /// The index of the frame with the last change of a record.
    private var last: [Place: Int] = [:]
    /// The results that were changed.
    private(set) var results: [UInt32: LiveContainer] = [:]

    /// Replaces the frame of the record's previous change by the frame at `index`.
    mutating func replace(
        _ record: RecordID, in group: LiveGroup, by index: Int, _ frames: inout [LiveGroupFrame]
    ) {
        let place = Place(group: group.number, record: record)
        guard let former = last.updateValue(index, forKey: place) else { return }
        if group.ended.isEmpty {
            frames[former] = LiveGroupFrame(group.number, nil)
        } else {
            // Clients whose queries ended with the previous frame get no later one, so they keep
            // it.
            frames[former].except.formUnion(group.clients.subtracting(group.ended))
        }
    }

    /// Notes a change of a record in a result: the record as a member before, the reasons for which
    /// it enters or leaves, and the effect on the result.
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
    /// Writes the frames of the results that coalesce.
    func finishCoalescing() {
        let coalesced = coalescing
        coalescing = Coalescing()
        for (number, container) in coalesced.results.sorted(by: { $0.key < $1.key }) {
            guard let group = container.groups[number], let members = group.members else {
                continue
            }
            // Most often a single change is read at a time. Going through all members for each of
            // them would hold up all clients.
            let items =
                group.onlyItems
                ?? members.difference(
                    since: group.touched, group.fates, showing: group.query.desiredKeys)
            group.onlyItems = nil
            group.touched.removeAll()
            group.fates.removeAll()
            // The frame is written and counted like that of one change.
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
