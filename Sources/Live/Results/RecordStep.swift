import RelayModel
/// One record before and after a change, with what many results ask of it worked out once.
struct RecordStep {
    /// What an order makes of it: an object, because a hundred results ask for one.
    final class Sorted {
        let order: ResultOrder
        let earlier: ResultMember?
        let later: ResultMember?
        /// Whether it stands somewhere else now, its key aside.
        let isMoved: Bool

        init(_ earlier: LiveRecord?, _ later: LiveRecord?, by order: ResultOrder) {
            self.order = order
            self.earlier = earlier.map(order.member)
            self.later = later.map(order.member)
            if let former = self.earlier, let latter = self.later {
                isMoved = !order.areSame(former.values, latter.values)
            } else {
                isMoved = false
            }
        }
    }

    /// The record as it was; `nil` if it was a member of nothing.
    let earlier: LiveRecord?
    /// The record as it is; `nil` if it is gone.
    let later: LiveRecord?
    /// Whether others may read it now.
    let changesReaders: Bool
    /// One for each order that was asked for.
    private var sorted: [Sorted] = []
    /// One for each list of fields that was asked for.
    private var sameness: [(keys: [String]?, isSame: Bool)] = []
    /// What it did to results, each once.
    private var items: [LiveItems] = []

    /// How many different orders, lists of fields, and lists of items are remembered: beyond them
    /// looking for one takes longer than working it out.
    private static let most = 8

    init(from earlier: LiveRecord?, to later: LiveRecord?) {
        self.earlier = earlier
        self.later = later
        changesReaders = !RecordChange.isSame(earlier?.readers, as: later?.readers)
    }

    /// The record by the values that `order` sorts by.
    mutating func sorted(by order: ResultOrder) -> Sorted {
        if let known = sorted.first(where: { $0.order === order || $0.order.basis == order.basis })
        {
            return known
        }
        let made = Sorted(earlier, later, by: order)
        if sorted.count < Self.most { sorted.append(made) }
        return made
    }

    /// Whether it shows the same as before, as far as `keys` go.
    mutating func isSame(_ keys: [String]?) -> Bool {
        if let known = sameness.first(where: { $0.keys == keys }) { return known.isSame }
        guard let earlier, let later else { return false }
        let isSame = later.isSame(as: earlier, keys)
        if sameness.count < Self.most { sameness.append((keys, isSame)) }
        return isSame
    }

    /// What it did to a result: the same object as for another one, if it did the same there.
    mutating func items(_ first: LiveItem, _ second: LiveItem?) -> LiveItems {
        if let known = items.first(where: { $0.are(first, second) }) { return known }
        let made = LiveItems([first] + (second.map { [$0] } ?? []))
        if items.count < Self.most { items.append(made) }
        return made
    }
}
