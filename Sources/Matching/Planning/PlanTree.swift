import PredicateLanguage
import RelayModel

/// One part of a predicate: a comparison, a constant, or an AND or OR that is followed by its
/// members.
struct PlanItem: BitwiseCopyable {
    enum Kind: UInt8 {
        /// A comparison that rows can judge, or that at least has keys.
        case comparison
        /// A comparison that only the reference evaluator can judge.
        case opaque
        case constant
        case all
        case any
    }

    var kind: Kind
    /// Whether it is under an odd number of NOTs.
    var isNegated: Bool
    /// The view of the path's values under another dialect's rules; `nil` under NSPredicate's
    /// rules.
    var view: ValueView?
    /// The value of a constant.
    var holds = false
    var test = RowTest.reference
    /// Whether there is an upper bound, as in BETWEEN.
    ///
    /// The constant is the lower bound then, and ``test`` is ``RowTest/greaterOrEqual``.
    var hasUpper = false
    /// The number of the field's path.
    var path: Int32 = 0
    /// The number of the item after the last one inside this item.
    var end: Int32 = 0
    /// The number of rows of its program.
    var rows: Int32 = 1
    /// A scalar; for ``RowTest/like``, the pattern in the form for rows.
    var constant = FieldSlot(.null)
    var upper = FieldSlot(.null)
    /// For ``RowTest/member``, the place of the scalars in ``PlanTree/members``.
    var firstMember: Int32 = 0
    var memberCount: Int32 = 0
    /// The index in ``PlanTree/clues`` of what is known about matching values, or -1.
    var clue: Int32 = -1
    /// The index in ``PlanTree/sources`` of the comparison for the reference evaluator, or -1.
    var source: Int32 = -1

    init(_ kind: Kind, isNegated: Bool) {
        self.kind = kind
        self.isNegated = isNegated
    }

    /// Whether all members must hold, with NOTs taken into account.
    var isConjunction: Bool { (kind == .all) != isNegated }
    /// Whether it follows the rules of another dialect, under which values are bags.
    var isLoose: Bool { view != nil }
    /// Whether it is a comparison by order.
    var isOrdering: Bool { kind == .comparison && test.isOrdering }
}

/// A predicate in a flat form for planning.
///
/// It is read from the tree once, so that repeated access needs no reference counting. Constants
/// are slots whose bytes are in the planner's encoder.
struct PlanTree: ~Copyable {
    /// The parts, each before the parts inside it.
    var items = GrowingBuffer<PlanItem>(capacity: 32)
    /// The members of the conjunction that the whole predicate is, after NOTs are moved inwards:
    /// their numbers.
    var conjuncts = GrowingBuffer<Int32>(capacity: 32)
    /// The intervals that the conjuncts allow for the fields' values.
    var intervals = GrowingBuffer<Interval>(capacity: 8)
    /// The scalars of lists.
    var members = GrowingBuffer<FieldSlot>(capacity: 32)
    /// The cost of evaluating the whole predicate.
    var weight = EvaluationWeight()
    private(set) var clues: [KeyClue] = []
    private(set) var sources: [Node] = []

    mutating func removeAll() {
        items.count = 0
        conjuncts.count = 0
        intervals.count = 0
        members.count = 0
        weight = EvaluationWeight()
        if !clues.isEmpty { clues.removeAll(keepingCapacity: true) }
        if !sources.isEmpty { sources.removeAll(keepingCapacity: true) }
    }

    /// Adds an item without members, and returns its number.
    mutating func append(_ item: PlanItem) -> Int {
        var item = item
        let number = items.count
        item.end = Int32(number + 1)
        items.append(item)
        return number
    }

    /// Closes a group after its members were added.
    mutating func close(_ group: Int) {
        var rows: Int32 = 0
        var member = group + 1
        while member < items.count {
            rows += items[member].rows
            member = Int(items[member].end)
        }
        var item = items[group]
        item.rows = rows
        item.end = Int32(items.count)
        items[group] = item
    }

    mutating func keep(_ clue: KeyClue) -> Int32 {
        clues.append(clue)
        return Int32(clues.count - 1)
    }

    mutating func keep(_ source: Node) -> Int32 {
        sources.append(source)
        return Int32(sources.count - 1)
    }

    /// Returns the item of a conjunct.
    @inline(__always)
    func conjunct(_ index: Int) -> PlanItem { items[Int(conjuncts[index])] }
}
