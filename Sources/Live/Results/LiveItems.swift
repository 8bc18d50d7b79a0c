/// The effects of one change on what a result shows: removed, added, changed, each in order.
///
/// Results on which the change had the same effect share one object, and these are nearly all
/// results that show the record. So the writer recognises by identity, for each of a thousand
/// results, what it has already written.
final class LiveItems: Sendable {
    let all: [LiveItem]
    private let hasSilent: Bool

    /// Creates the effects from a list.
    init(_ all: [LiveItem]) {
        self.all = all
        hasSilent = all.contains { $0.isSilent }
    }

    /// The items without silent ones, for a result that belongs to one reader.
    ///
    /// In such a result it makes no difference who else may read a record.
    var ofOwn: LiveItems { hasSilent ? LiveItems(all.filter { !$0.isSilent }) : self }

    /// Returns whether these are exactly the given effects on the record and on the one at the cut.
    func are(_ first: LiveItem, _ second: LiveItem?) -> Bool {
        guard all.count == (second == nil ? 1 : 2), all[0].isSame(as: first) else { return false }
        return second.map { all[1].isSame(as: $0) } ?? true
    }
}

extension LiveItem {
    /// Returns whether both items tell the same about the same record in the same place.
    func isSame(as other: LiveItem) -> Bool {
        record === other.record && neighbour === other.neighbour && before === other.before
            && operation == other.operation && reason == other.reason && moved == other.moved
            && isSilent == other.isSilent && (others == nil) == (other.others == nil)
    }
}
