import RelayModel
import Storage

/// The marks of some entries, by which tokens tell one history of a store from another.
struct EntryMarks {
    /// The maximum number of marks; clients that come back together stand at few positions.
    private static let most = 1024

    private var marks: [LogPosition: UInt32] = [:]

    /// Notes the mark of an entry.
    mutating func note(_ entry: FollowedEntry) {
        if marks.count >= Self.most { marks.removeAll(keepingCapacity: true) }
        marks[entry.position] = LiveToken.mark(of: entry.appendedAt)
    }

    /// The mark of the entry at a position, if it is known.
    subscript(position: LogPosition) -> UInt32? { marks[position] }
}

extension LiveEngine {
    /// The number of entries that are read for one set; its queries usually stand at one or two
    /// positions.
    private static let mostMarksRead = 8

    /// Returns a set in which those queries begin anew whose tokens are of another history.
    ///
    /// A store that was set back without a new identity, such as a standby that lacked the end of
    /// the log, uses positions a second time. A client that stood at one of these would miss
    /// changes, and would keep what never happened. Queries at made-up positions have few entries
    /// read for them, and go on otherwise.
    package func verified(_ set: LiveSet) async -> LiveSet {
        var set = set
        var left = Self.mostMarksRead
        for index in set.queries.indices where set.queries[index].reset == nil {
            guard let since = set.queries[index].since, let told = set.queries[index].entryMark,
                marks[since] != nil || left > 0
            else { continue }
            if marks[since] == nil { left -= 1 }
            guard let mark = await mark(at: since), mark != told else { continue }
            set.queries[index].reset = .foreign
        }
        // The tokens of an engine that has had nobody to follow for have no mark.
        if marks[position] == nil, await mark(at: position) != nil { closing = nil }
        return set
    }

    /// Returns the mark of the entry at a position; `nil` if the log does not have it, or cannot be
    /// read now.
    private func mark(at place: LogPosition) async -> UInt32? {
        guard place > .start, place <= position else { return nil }
        if let known = marks[place] { return known }
        let entries = try? await log.followedEntries(
            after: LogPosition(place.rawValue - 1), limit: 1)
        guard let entry = entries?.first, entry.position == place else { return nil }
        marks.note(entry)
        return marks[place]
    }
}
