import PredicateLanguage
import RelayModel

/// A key chosen for a predicate: its bytes lie in the planner's encoder.
struct PlannedKey: BitwiseCopyable {
    var hash: UInt32
    var dimension: UInt32
    var offset: UInt32
    var length: UInt32
    /// Whether the key proves the conjunct that it was chosen for.
    var isExact: Bool
}

/// What an access path is expected to cost, and proves.
struct Access {
    /// The share of changes that hit one of its keys.
    var expected: Double
    /// Whether every key proves the part of the predicate that it was chosen for.
    var isExact: Bool
    /// Whether that part never has an evaluation error.
    var isSafe: Bool
    /// How many keys.
    var keys: Int
}

/// How a predicate is filed.
struct Filing {
    /// What is left to verify beside the key by comparing one interval.
    var interval: Interval?
    /// The program after an exact key, 0 for none.
    var rest: UInt32 = 0
    /// The program after a key that proves nothing, 0 for none.
    var whole: UInt32 = 0
    /// Candidates expected per change.
    var expected: Double = 0
    /// Whether it has no key but its record type.
    var isResidual = false
    /// Whether the key is the cell in which the interval begins.
    var isInCell: Bool { interval?.inCells != nil }
}

/// Chooses the keys under which a predicate is filed, and writes the rows that verify the rest.
///
/// A key is a necessary condition: whenever the predicate holds, one of its keys is hit. A
/// conjunction takes the keys of its most selective member, a disjunction those of all; nothing is
/// multiplied out. What cannot be keyed is filed under its record type.
///
/// Not safe for concurrent use: ``IndexCore`` is guarded as a whole.
final class Planner {
    /// Keys of one subscription; predicates that need more are filed under their record type.
    static let mostKeys = 512
    /// Estimates made for one predicate, so that nobody's predicate takes long to save.
    static let mostWork = 4000

    let seed: UInt64
    @exclusivity(unchecked) var selectivity = Selectivity()
    @exclusivity(unchecked) var keys = GrowingBuffer<PlannedKey>()
    @exclusivity(unchecked) var encoder = ValueEncoder()
    @exclusivity(unchecked) var draft = ProgramDraft()
    let store: PostingStore
    private let programs: ProgramStore
    /// Estimates made so far.
    @exclusivity(unchecked) var work = 0
    /// While keys are written only to be weighed, nothing is taken into use.
    @exclusivity(unchecked) var isEstimating = false
    @exclusivity(unchecked) private(set) var compartment: UInt32 = 0
    @exclusivity(unchecked) private(set) var shelf = 0

    init(seed: UInt64, store: PostingStore, programs: ProgramStore) {
        self.seed = seed
        self.store = store
        self.programs = programs
    }

    /// Plans a predicate; the keys are in ``keys`` afterwards.
    func plan(
        _ predicate: RecordPredicate?, shelf: Int, compartment: UInt32, catalog: inout Catalog
    ) -> Filing {
        self.shelf = shelf
        self.compartment = compartment
        keys.count = 0
        encoder.removeAll()
        work = 0
        guard let predicate else { return every(&catalog, Filing()) }
        let root = predicate.root
        if case .constant(let holds) = root {
            return holds ? every(&catalog, Filing()) : Filing()
        }
        if case .comparison(let comparison) = root, let leaf = leaf(comparison, &catalog),
            let filing = planLeaf(leaf, root, &catalog)
        {
            return filing
        }
        if root.bindsVariables {
            var filing = Filing()
            filing.whole = reference(root)
            return every(&catalog, filing)
        }
        return planTree(root, &catalog)
    }

    private func every(_ catalog: inout Catalog, _ filing: Filing) -> Filing {
        var filing = filing
        let dimension = KeyDimension(
            shelf: UInt32(shelf), kind: .every, isCompartmented: compartment != 0)
        addKey(dimension, begin(), isExact: filing.whole == 0, &catalog)
        filing.expected = 1
        filing.isResidual = true
        return filing
    }

    /// The quick way for what most predicates are: one comparison with a key that proves it.
    private func planLeaf(
        _ leaf: Leaf, _ root: Node, _ catalog: inout Catalog
    ) -> Filing? {
        switch leaf.test {
        case .equal, .begins, .anyEqual: break
        case .member where leaf.members.count <= 16: break
        default: return nil
        }
        emit(leaf, isNegated: false, &catalog)
        var filing = Filing()
        filing.expected = expectedHits()
        if hasKey(isExact: false) {
            filing.whole = compile(root, &catalog)
        }
        return filing
    }

    private func planTree(_ root: Node, _ catalog: inout Catalog) -> Filing {
        var members: [Member] = []
        flatten(root, isNegated: false, into: &members, &catalog)
        let intervals = intervals(of: members)
        let best = choose(members, intervals, &catalog)
        var filing = Filing()
        // What the key proves, and then what the interval beside it verifies.
        var proven = -1
        switch best {
        case .member(let index):
            if keys.count == 0 { emit(members[index], &catalog) }
            if hasKey(isExact: true) { proven = index }
            for interval in intervals
            where index >= 64 || interval.conjuncts >> UInt64(index) & 1 == 0 {
                if filing.interval.map({ estimate(interval) < estimate($0) }) ?? true {
                    filing.interval = interval
                }
            }
        case .interval(let index):
            filing.interval = intervals[index]
            filing.interval?.inCells = emit(intervals[index], &catalog)
        case nil:
            let dimension = KeyDimension(
                shelf: UInt32(shelf), kind: .every, isCompartmented: compartment != 0)
            addKey(dimension, begin(), isExact: true, &catalog)
            filing.interval = intervals.first
        }
        if let interval = filing.interval, interval.isEmpty {
            keys.count = 0
            return filing
        }
        filing.isResidual = best == nil
        filing.expected = filing.isResidual ? 1 : expectedHits()
        let verified = filing.interval?.conjuncts ?? 0
        filing.rest = compile(members, without: verified, proven, &catalog)
        if hasKey(isExact: false) {
            filing.whole = compile(members, without: verified, -1, &catalog)
        }
        return filing
    }

    private func hasKey(isExact: Bool) -> Bool {
        for index in 0..<keys.count where keys[index].isExact == isExact { return true }
        return false
    }

    /// Reads a comparison that rows can judge, and numbers its field.
    ///
    /// Across record types fields have no numbers.
    func leaf(_ comparison: Comparison, _ catalog: inout Catalog) -> Leaf? {
        guard shelf != 0, var leaf = Leaf(comparison) else { return nil }
        let path =
            leaf.field.isEmpty && leaf.clue != nil
            ? catalog.makeRecordPath(shelf: shelf)
            : catalog.makePath(
                leaf.field, inner: leaf.inner, folding: leaf.folding, shelf: shelf)
        guard let path else { return nil }
        leaf.path = path
        return leaf
    }

    // MARK: Choosing

    /// A member of a conjunction.
    struct Member {
        var node: Node
        var isNegated: Bool
        /// The same where it is a comparison that rows can judge.
        var leaf: Leaf?
    }

    enum Choice: Equatable {
        case member(Int)
        case interval(Int)
    }

    /// Lists the members of nested conjunctions, NOTs moved inwards.
    private func flatten(
        _ node: Node, isNegated: Bool, into members: inout [Member], _ catalog: inout Catalog
    ) {
        switch node {
        case .not(let inner):
            flatten(inner, isNegated: !isNegated, into: &members, &catalog)
        case .and(let nodes) where !isNegated, .or(let nodes) where isNegated:
            members.reserveCapacity(nodes.count)
            for inner in nodes {
                flatten(inner, isNegated: isNegated, into: &members, &catalog)
            }
        case .comparison(let comparison):
            let leaf = leaf(comparison, &catalog)
            members.append(Member(node: node, isNegated: isNegated, leaf: leaf))
        default: members.append(Member(node: node, isNegated: isNegated))
        }
    }

    private func intervals(of members: [Member]) -> [Interval] {
        var intervals: [Interval] = []
        for (index, member) in members.prefix(64).enumerated() {
            guard let leaf = member.leaf, leaf.test.isOrdering,
                let narrower = interval(of: leaf, isNegated: member.isNegated)
            else { continue }
            let known = intervals.firstIndex {
                $0.path == narrower.path && $0.valueClass == narrower.valueClass
            }
            if let known {
                intervals[known].low = max(intervals[known].low, narrower.low)
                intervals[known].high = min(intervals[known].high, narrower.high)
                intervals[known].conjuncts |= 1 << UInt64(index)
            } else {
                intervals.append(narrower)
                intervals[intervals.count - 1].conjuncts = 1 << UInt64(index)
            }
        }
        return intervals
    }

    private func choose(
        _ members: [Member], _ intervals: [Interval], _ catalog: inout Catalog
    ) -> Choice? {
        if members.count == 1, intervals.isEmpty {
            // Nothing to weigh: its keys, if it has some and not too many.
            let isKeyed = emit(members[0], &catalog) != nil && keys.count <= Self.mostKeys
            if !isKeyed { keys.count = 0 }
            return isKeyed ? .member(0) : nil
        }
        var best: Choice?
        var least = Double.infinity
        for (index, member) in members.enumerated() {
            // Its interval, narrowed by the other members, is considered below.
            if index < 64, member.leaf?.test.isOrdering == true { continue }
            guard let access = estimate(member, &catalog), access.keys <= Self.mostKeys,
                access.expected < least
            else { continue }
            least = access.expected
            best = .member(index)
        }
        for (index, interval) in intervals.enumerated() {
            let expected = expectedHits(of: interval, &catalog)
            if expected < least {
                least = expected
                best = .interval(index)
            }
        }
        return best
    }

    private func estimate(_ member: Member, _ catalog: inout Catalog) -> Access? {
        if let leaf = member.leaf { return estimate(leaf, isNegated: member.isNegated, &catalog) }
        return estimate(member.node, isNegated: member.isNegated, &catalog)
    }

    @discardableResult
    private func emit(_ member: Member, _ catalog: inout Catalog) -> Proof? {
        if let leaf = member.leaf { return emitLeaf(leaf, isNegated: member.isNegated, &catalog) }
        return emit(member.node, isNegated: member.isNegated, &catalog)
    }

    // MARK: Keys

    /// The dimensions by their numbers, as far as keys were planned in them.
    @exclusivity(unchecked) private(set) var keyDimensions: [KeyDimension] = []

    /// Whether keys of a dimension ask nothing but the record type.
    func isEvery(_ dimension: UInt32) -> Bool {
        Int(dimension) < keyDimensions.count && keyDimensions[Int(dimension)].kind == .every
    }

    /// Forgets dimensions that were taken back.
    func forgetDimensions(from count: Int) {
        if keyDimensions.count > count { keyDimensions.removeLast(keyDimensions.count - count) }
    }

    /// Where the bytes of the next key begin; in a compartment they begin with its number.
    func begin() -> Int {
        let start = encoder.bytes.count
        if compartment != 0 { KeyBytes.append(compartment, to: &encoder.bytes) }
        return start
    }

    /// Adds the key whose bytes were written from `start` on, unless it is there already.
    func addKey(
        _ dimension: KeyDimension, _ start: Int, length: Int? = nil, isExact: Bool,
        _ catalog: inout Catalog
    ) {
        let number = catalog.makeDimension(dimension)
        while keyDimensions.count <= Int(number) {
            keyDimensions.append(catalog.dimensions[keyDimensions.count])
        }
        let length = length ?? encoder.bytes.count - start
        let hash = KeyHash.hash(
            encoder.bytes.base + start, length, seed: KeyBytes.seed(seed, number))
        let key = PlannedKey(
            hash: hash, dimension: number, offset: UInt32(start), length: UInt32(length),
            isExact: isExact)
        for index in 0..<keys.count where isSame(keys[index], key) {
            if !isExact { keys[index].isExact = false }
            return
        }
        keys.append(key)
    }

    private func isSame(_ left: PlannedKey, _ right: PlannedKey) -> Bool {
        guard left.hash == right.hash, left.dimension == right.dimension,
            left.length == right.length
        else { return false }
        return (0..<Int(left.length)).allSatisfy {
            encoder.bytes[Int(left.offset) + $0] == encoder.bytes[Int(right.offset) + $0]
        }
    }

    // MARK: Programs

    /// A program that hands the whole predicate to the reference evaluator; 0 if it cannot ever
    /// hold.
    private func reference(_ root: Node) -> UInt32 {
        draft.removeAll()
        appendReference(
            root, isNegated: false, onTrue: ProgramRow.accept, onFalse: ProgramRow.reject)
        return programs.intern(draft)
    }

    func appendReference(_ node: Node, isNegated: Bool, onTrue: UInt16, onFalse: UInt16) {
        let number = programs.reference(to: node)
        draft.append(
            ProgramRow(
                .reference, isNegated: isNegated, path: 0, constant: UInt32(number),
                onTrue: onTrue, onFalse: onFalse))
    }

    private func compile(_ root: Node, _ catalog: inout Catalog) -> UInt32 {
        compile([Member(node: root, isNegated: false)], without: 0, -1, &catalog)
    }

    private func compile(
        _ members: [Member], without verified: UInt64, _ proven: Int, _ catalog: inout Catalog
    ) -> UInt32 {
        if members.count == verified.nonzeroBitCount + (proven < 0 ? 0 : 1) { return 0 }
        var left: [Member] = []
        for (index, member) in members.enumerated() where index != proven {
            if index < 64, verified >> UInt64(index) & 1 == 1 { continue }
            left.append(member)
        }
        let compiler = ProgramCompiler(shelf: shelf)
        let rows = left.reduce(0) { $0 + compiler.rows($1) }
        if rows > ProgramRow.most {
            return reference(.and(left.map { $0.isNegated ? .not($0.node) : $0.node }))
        }
        draft.removeAll()
        compiler.compile(left, into: self, &catalog)
        return programs.intern(draft)
    }
}
