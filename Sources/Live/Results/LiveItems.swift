/// What one change did to what a result shows: removed, added, changed, each in order.
///
/// One object for all results to which it did the same, which are nearly all that show the record:
/// who tells a thousand of them finds by one look what was written for the one before.
final class LiveItems: Sendable {
    let all: [LiveItem]
    private let hasSilent: Bool

    /// These.
    init(_ all: [LiveItem]) {
        self.all = all
        hasSilent = all.contains { $0.isSilent }
    }

    /// Those that somebody is told whose own result it is: who else may read a record makes no
    /// difference there.
    var ofOwn: LiveItems { hasSilent ? LiveItems(all.filter { !$0.isSilent }) : self }

    /// Whether these are what was done to the record, and to the one at the cut.
    func are(_ first: LiveItem, _ second: LiveItem?) -> Bool {
        guard all.count == (second == nil ? 1 : 2), all[0].isSame(as: first) else { return false }
        return second.map { all[1].isSame(as: $0) } ?? true
    }
}

extension LiveItem {
    /// Whether the same is told of the same record, in the same place.
    func isSame(as other: LiveItem) -> Bool {
        record === other.record && neighbour === other.neighbour && before === other.before
            && operation == other.operation && reason == other.reason && moved == other.moved
            && isSilent == other.isSilent
    }
}
