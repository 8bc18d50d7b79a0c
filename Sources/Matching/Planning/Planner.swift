import PredicateLanguage
import RelayModel

/// A key that was chosen for a predicate; its bytes are in the planner's encoder.
struct PlannedKey: BitwiseCopyable {
    var hash: UInt32
    var dimension: UInt32
    var offset: UInt32
    var length: UInt32
    /// Whether the key proves the conjunct that it was chosen for.
    var isExact: Bool
}

/// The expected cost of an access path, and what it proves.
struct Access {
    /// The share of changes that hit one of its keys.
    var expected: Double
    /// Whether every key proves the part of the predicate that it was chosen for.
    var isExact: Bool
    /// Whether that part never has an evaluation error.
    var isSafe: Bool
    /// The number of keys.
    var keys: Int
}

/// The way in which a predicate is filed.
struct Filing {
    /// The interval to compare after the key.
    var interval: Interval?
    /// The program to run after an exact key; 0 for none.
    var rest: UInt32 = 0
    /// The program to run after a key that is not exact; 0 for none.
    var whole: UInt32 = 0
    /// The expected share of changes for which it is a candidate.
    var expected: Double = 0
    /// Whether it is filed under its record type alone.
    var isResidual = false
    /// Whether the key is the cell in which the interval begins.
    var isInCell: Bool { interval?.inCells != nil }
}

/// Chooses the keys under which a predicate is filed, and writes the rows that verify the rest.
///
/// A key is a necessary condition: whenever the predicate holds, one of its keys is hit. A
/// conjunction takes the keys of its most selective member, a disjunction takes the keys of all
/// members. The predicate is not expanded into a normal form. A predicate without keys is filed
/// under its record type.
///
/// Not safe for concurrent use: ``IndexCore`` is guarded as a whole.
final class Planner {
    /// The maximum number of keys of one subscription; a predicate that needs more is filed under
    /// its record type.
    static let mostKeys = 512
    /// The maximum number of estimates for one predicate, and again while its keys are written.
    ///
    /// It bounds the time that saving a predicate takes.
    static let mostWork = 4000

    let seed: UInt64
    @exclusivity(unchecked) var selectivity = Selectivity()
    @exclusivity(unchecked) var keys = GrowingBuffer<PlannedKey>()
    @exclusivity(unchecked) var encoder = ValueEncoder()
    @exclusivity(unchecked) var draft = ProgramDraft()
    /// The predicate that is being planned.
    @exclusivity(unchecked) var tree = PlanTree()
    let store: PostingStore
    let programs: ProgramStore
    /// The number of estimates so far.
    @exclusivity(unchecked) var work = 0
    /// The number of comparisons in the current predicate whose field has no number, because the
    /// conditions of the record type use too many fields.
    @exclusivity(unchecked) var unplaced = 0
    /// Whether keys are written only for an estimate, so that nothing may be entered in the catalog
    /// as in use.
    @exclusivity(unchecked) var isEstimating = false
    @exclusivity(unchecked) private(set) var compartment: UInt32 = 0
    @exclusivity(unchecked) private(set) var plan = 0

    init(seed: UInt64, store: PostingStore, programs: ProgramStore) {
        self.seed = seed
        self.store = store
        self.programs = programs
    }

    /// Plans a predicate; its keys are in ``keys`` afterwards.
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
        // The metered evaluation judges the whole predicate, including its plain comparisons.
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
        // The conjunct that the key proves, or -1; the interval beside it verifies further
        // conjuncts.
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
        // Each program is compiled, and so counted as used, only if a key needs it.
        if hasKey(isExact: true) { filing.rest = compile(root, without: verified, proven) }
        if hasKey(isExact: false) { filing.whole = compile(root, without: verified, -1) }
        return filing
    }

    /// Returns the interval with the lowest estimate among those that the conjunct is not part of.
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

    /// Combines the conjuncts by order on each field into intervals.
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
            // Two values of a list may together satisfy bounds that no single value satisfies; a
            // row verifies that.
            if united.isLoose, united.isEmpty { continue }
            tree.intervals[number] = united
        }
    }

    private func choose(_ catalog: inout Catalog) -> Choice? {
        let count = tree.conjuncts.count
        if count == 1, tree.intervals.count == 0 {
            // There is nothing to compare: use its keys, if it has any and not too many.
            return emitWhole(0, &catalog) ? .member(0) : nil
        }
        var best: Choice?
        var least = Double.infinity
        for index in 0..<count {
            // Its interval, narrowed by other conjuncts, is considered below.
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

    /// Adds all keys of a conjunct, or none, and returns whether it added them.
    ///
    /// It adds none if there are too many. Conjunctions inside the conjunct are estimated again,
    /// and that may exceed the limit although the first estimate did not. An incomplete set of keys
    /// would miss changes for which the predicate holds.
    private func emitWhole(_ index: Int, _ catalog: inout Catalog) -> Bool {
        work = 0
        let isKeyed =
            emit(Int(tree.conjuncts[index]), &catalog) != nil && keys.count <= Self.mostKeys
        if !isKeyed { keys.count = 0 }
        return isKeyed
    }

    /// The dimensions by number, up to the highest in which a key was planned.
    @exclusivity(unchecked) private(set) var keyDimensions: [KeyDimension] = []

    /// Returns whether the keys of a dimension stand for the record type alone.
    func isEvery(_ dimension: UInt32) -> Bool {
        Int(dimension) < keyDimensions.count && keyDimensions[Int(dimension)].kind == .every
    }

    /// Returns whether a dimension is for intervals that lists of values may satisfy.
    func isHull(_ dimension: UInt32) -> Bool {
        Int(dimension) < keyDimensions.count && keyDimensions[Int(dimension)].kind == .hull
    }

    /// Forgets dimensions that the catalog has withdrawn.
    func forgetDimensions(from count: Int) {
        if keyDimensions.count > count { keyDimensions.removeLast(keyDimensions.count - count) }
    }

    /// Begins a key and returns the place of its bytes; in a compartment they begin with its
    /// number.
    func begin() -> Int {
        let start = encoder.bytes.count
        if compartment != 0 { KeyBytes.append(compartment, to: &encoder.bytes) }
        return start
    }

    /// Adds the key whose bytes were written from `start` on, unless it was added before.
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
