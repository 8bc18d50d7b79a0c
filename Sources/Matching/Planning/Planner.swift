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
    /// Estimates made for one predicate, and again while its keys are written, so that nobody's
    /// predicate takes long to save.
    static let mostWork = 4000

    let seed: UInt64
    @exclusivity(unchecked) var selectivity = Selectivity()
    @exclusivity(unchecked) var keys = GrowingBuffer<PlannedKey>()
    @exclusivity(unchecked) var encoder = ValueEncoder()
    @exclusivity(unchecked) var draft = ProgramDraft()
    /// The predicate in hand.
    @exclusivity(unchecked) var tree = PlanTree()
    let store: PostingStore
    let programs: ProgramStore
    /// Estimates made so far.
    @exclusivity(unchecked) var work = 0
    /// Comparisons of the predicate in hand whose field has no number, because the record type's
    /// conditions name too many.
    @exclusivity(unchecked) var unplaced = 0
    /// While keys are written only to be weighed, nothing is taken into use.
    @exclusivity(unchecked) var isEstimating = false
    @exclusivity(unchecked) private(set) var compartment: UInt32 = 0
    @exclusivity(unchecked) private(set) var plan = 0

    init(seed: UInt64, store: PostingStore, programs: ProgramStore) {
        self.seed = seed
        self.store = store
        self.programs = programs
    }

    /// Plans a predicate; the keys are in ``keys`` afterwards.
    func plan(
        _ predicate: RecordPredicate?, plan: Int, compartment: UInt32, catalog: inout Catalog
    ) -> Filing {
        self.plan = plan
        self.compartment = compartment
        keys.count = 0
        encoder.removeAll()
        work = 0
        unplaced = 0
        tree.removeAll()
        guard let predicate else { return every(&catalog, Filing()) }
        let root = predicate.root
        if case .constant(let holds) = root {
            return holds ? every(&catalog, Filing()) : Filing()
        }
        guard read(root, isNegated: false, isConjunct: true, &catalog) else {
            noteSystemFields(of: root, &catalog)
            var filing = Filing()
            filing.whole = reference(root)
            return every(&catalog, filing)
        }
        // The counted evaluation judges the whole, the plain comparisons in it too.
        if tree.weight.isMetered { noteSystemFields(of: root, &catalog) }
        return planTree(root, &catalog)
    }

    private func every(_ catalog: inout Catalog, _ filing: Filing) -> Filing {
        var filing = filing
        let dimension = KeyDimension(
            plan: UInt32(plan), kind: .every, isCompartmented: compartment != 0)
        addKey(dimension, begin(), isExact: filing.whole == 0, &catalog)
        filing.expected = 1
        filing.isResidual = true
        return filing
    }

    private func planTree(_ root: Node, _ catalog: inout Catalog) -> Filing {
        findIntervals()
        var best = choose(&catalog)
        if case .member(let index)? = best, keys.count == 0, !emitWhole(index, &catalog) {
            best = tree.intervals.count > 0 ? .interval(0) : nil
        }
        var filing = Filing()
        // What the key proves, and then what the interval beside it verifies.
        var proven = -1
        switch best {
        case .member(let index):
            if hasKey(isExact: true) { proven = index }
            filing.interval = narrowest(beside: index)
        case .interval(let index):
            filing.interval = tree.intervals[index]
            filing.interval?.inCells = emit(tree.intervals[index], &catalog)
        case nil:
            let dimension = KeyDimension(
                plan: UInt32(plan), kind: .every, isCompartmented: compartment != 0)
            addKey(dimension, begin(), isExact: true, &catalog)
            filing.interval = tree.intervals.count > 0 ? tree.intervals[0] : nil
        }
        if let interval = filing.interval, interval.isEmpty {
            keys.count = 0
            return filing
        }
        filing.isResidual = best == nil
        filing.expected = filing.isResidual ? 1 : expectedHits()
        let verified = filing.interval?.conjuncts ?? 0
        // Each program is counted as used only where a key asks for it.
        if hasKey(isExact: true) { filing.rest = compile(root, without: verified, proven) }
        if hasKey(isExact: false) { filing.whole = compile(root, without: verified, -1) }
        return filing
    }

    /// The interval that rules out the most, of those that are no part of a conjunct.
    private func narrowest(beside index: Int) -> Interval? {
        var best: Interval?
        for number in 0..<tree.intervals.count {
            let interval = tree.intervals[number]
            if index < 64, interval.conjuncts >> UInt64(index) & 1 == 1 { continue }
            if best.map({ estimate(interval) < estimate($0) }) ?? true { best = interval }
        }
        return best
    }

    private func hasKey(isExact: Bool) -> Bool {
        for index in 0..<keys.count where keys[index].isExact == isExact { return true }
        return false
    }

    // MARK: Choosing

    enum Choice: Equatable {
        case member(Int)
        case interval(Int)
    }

    /// Draws together what the conjuncts leave of each field's values.
    private func findIntervals() {
        for index in 0..<min(tree.conjuncts.count, 64) {
            guard var narrower = interval(of: tree.conjunct(index)) else { continue }
            narrower.conjuncts = 1 << UInt64(index)
            var number = 0
            while number < tree.intervals.count {
                let known = tree.intervals[number]
                if known.path == narrower.path, known.valueClass == narrower.valueClass { break }
                number += 1
            }
            if number == tree.intervals.count {
                tree.intervals.append(narrower)
                continue
            }
            var united = tree.intervals[number]
            united.unite(with: narrower)
            // Two values of a list may satisfy what no single one does: a row verifies that.
            if united.isLoose, united.isEmpty { continue }
            tree.intervals[number] = united
        }
    }

    private func choose(_ catalog: inout Catalog) -> Choice? {
        let count = tree.conjuncts.count
        if count == 1, tree.intervals.count == 0 {
            // Nothing to weigh: its keys, if it has some and not too many.
            return emitWhole(0, &catalog) ? .member(0) : nil
        }
        var best: Choice?
        var least = Double.infinity
        for index in 0..<count {
            // Its interval, narrowed by the other members, is considered below.
            if index < 64, tree.conjunct(index).isOrdering { continue }
            guard let access = estimate(Int(tree.conjuncts[index]), &catalog),
                access.keys <= Self.mostKeys, access.expected < least
            else { continue }
            least = access.expected
            best = .member(index)
        }
        for index in 0..<tree.intervals.count {
            let expected = expectedHits(of: tree.intervals[index], &catalog)
            if expected < least {
                least = expected
                best = .interval(index)
            }
        }
        return best
    }

    // MARK: Keys

    /// Adds all keys of a conjunct, or none; says whether it has some and not too many.
    ///
    /// Conjunctions inside it are weighed once more, which may come to its end though weighing the
    /// whole did not: part of the keys would leave out changes for which the predicate holds.
    private func emitWhole(_ index: Int, _ catalog: inout Catalog) -> Bool {
        work = 0
        let isKeyed =
            emit(Int(tree.conjuncts[index]), &catalog) != nil && keys.count <= Self.mostKeys
        if !isKeyed { keys.count = 0 }
        return isKeyed
    }

    /// The dimensions by their numbers, as far as keys were planned in them.
    @exclusivity(unchecked) private(set) var keyDimensions: [KeyDimension] = []

    /// Whether keys of a dimension ask nothing but the record type.
    func isEvery(_ dimension: UInt32) -> Bool {
        Int(dimension) < keyDimensions.count && keyDimensions[Int(dimension)].kind == .every
    }

    /// Whether keys of a dimension are those under which intervals are found by lists of values.
    func isHull(_ dimension: UInt32) -> Bool {
        Int(dimension) < keyDimensions.count && keyDimensions[Int(dimension)].kind == .hull
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
}
