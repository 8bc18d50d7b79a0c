import PredicateLanguage
import RelayModel

/// One part of a predicate: a comparison, a constant, or an AND or OR whose members follow it.
struct PlanItem: BitwiseCopyable {
    enum Kind: UInt8 {
        /// A comparison that rows can judge, or that at least has keys.
        case comparison
        /// A comparison of which only the reference evaluator knows anything.
        case opaque
        case constant
        case all
        case any
    }

    var kind: Kind
    /// Whether it stands under an odd number of NOTs.
    var isNegated: Bool
    /// How another dialect's rules see the path's values; `nil` under NSPredicate's.
    var view: ValueView?
    /// What a constant says.
    var holds = false
    var test = RowTest.reference
    /// Whether there is an upper bound: BETWEEN, whose lower bound is the constant (and ``test`` is
    /// ``RowTest/greaterOrEqual``).
    var hasUpper = false
    /// The number of the field's path.
    var path: Int32 = 0
    /// The item after the last one inside it.
    var end: Int32 = 0
    /// Rows of its program.
    var rows: Int32 = 1
    /// A scalar; of ``RowTest/like`` the pattern as rows want it.
    var constant = FieldSlot(.null)
    var upper = FieldSlot(.null)
    /// Of ``RowTest/member``, the scalars among ``PlanTree/members``.
    var firstMember: Int32 = 0
    var memberCount: Int32 = 0
    /// What is known about values for which the comparison holds, among ``PlanTree/clues``, or -1.
    var clue: Int32 = -1
    /// The comparison among ``PlanTree/sources``, where the reference evaluator is asked, or -1.
    var source: Int32 = -1

    init(_ kind: Kind, isNegated: Bool) {
        self.kind = kind
        self.isNegated = isNegated
    }

    /// Whether all members must hold, NOTs taken into account.
    var isConjunction: Bool { (kind == .all) != isNegated }
    /// Whether it follows another dialect's rules, under which values are bags.
    var isLoose: Bool { view != nil }
    /// Whether it compares by order.
    var isOrdering: Bool { kind == .comparison && test.isOrdering }
}

/// A predicate laid flat to be planned: what is asked of its tree again and again is read once,
/// without counting references.
///
/// Constants are slots whose bytes lie in the planner's encoder.
struct PlanTree: ~Copyable {
    /// The parts, each before those inside it.
    var items = GrowingBuffer<PlanItem>(capacity: 32)
    /// The conjunction that the whole is, NOTs moved inwards: the numbers of its members.
    var conjuncts = GrowingBuffer<Int32>(capacity: 32)
    /// What the conjuncts leave of the fields' values.
    var intervals = GrowingBuffer<Interval>(capacity: 8)
    /// The scalars of lists.
    var members = GrowingBuffer<FieldSlot>(capacity: 32)
    /// What evaluating the whole may take.
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

    /// Adds an item that has nothing inside yet; says its number.
    mutating func append(_ item: PlanItem) -> Int {
        var item = item
        let number = items.count
        item.end = Int32(number + 1)
        items.append(item)
        return number
    }

    /// Closes a group once its members are there.
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

    /// A conjunct.
    @inline(__always)
    func conjunct(_ index: Int) -> PlanItem { items[Int(conjuncts[index])] }
}
