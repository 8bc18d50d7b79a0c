import RelayModel
/// One record before and after a change, with the answers that many results need computed once.
struct RecordStep {
    /// The record before and after in one order; an object, because a hundred results share one.
    final class Sorted {
        let order: ResultOrder
        let earlier: ResultMember?
        let later: ResultMember?
        /// Whether its sort values changed; the key is not compared.
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

    /// The record before the change; `nil` if it was a member of no result.
    let earlier: LiveRecord?
    /// The record after the change; `nil` if it is deleted.
    let later: LiveRecord?
    /// Whether the record's readers changed.
    let changesReaders: Bool
    /// The answers for the orders so far.
    private var sorted: [Sorted] = []
    /// The answers for the lists of fields so far.
    private var sameness: [(keys: [String]?, isSame: Bool)] = []
    /// The distinct effects on results so far.
    private var items: [LiveItems] = []

    /// The number of orders, field lists and effects that are remembered of each kind; searching
    /// through more would take longer than computing the answer again.
    private static let most = 8

    init(from earlier: LiveRecord?, to later: LiveRecord?) {
        self.earlier = earlier
        self.later = later
        changesReaders = !RecordChange.isSame(earlier?.readers, as: later?.readers)
    }

    /// Returns the record with the values that `order` sorts by.
    mutating func sorted(by order: ResultOrder) -> Sorted {
        if let known = sorted.first(where: { $0.order === order || $0.order.basis == order.basis })
        {
            return known
        }
        let made = Sorted(earlier, later, by: order)
        if sorted.count < Self.most { sorted.append(made) }
        return made
    }

    /// Returns whether the record looks the same as before in the fields `keys`.
    mutating func isSame(_ keys: [String]?) -> Bool {
        if let known = sameness.first(where: { $0.keys == keys }) { return known.isSame }
        guard let earlier, let later else { return false }
        let isSame = later.isSame(as: earlier, keys)
        if sameness.count < Self.most { sameness.append((keys, isSame)) }
        return isSame
    }

    /// Returns the effect on a result; results with the same effect get the same object.
    mutating func items(_ first: LiveItem, _ second: LiveItem?) -> LiveItems {
        if let known = items.first(where: { $0.are(first, second) }) { return known }
        let made = LiveItems([first] + (second.map { [$0] } ?? []))
        if items.count < Self.most { items.append(made) }
        return made
    }
}
