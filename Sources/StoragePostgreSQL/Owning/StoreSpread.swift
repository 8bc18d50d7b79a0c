import Crypto

/// Decides which machine should own which of several stores; relays that see the same decide the
/// same.
///
/// Every store that some machine can own is assigned. The load is balanced: no store can be passed
/// on, directly or through other machines, to a machine that has at least two fewer stores. If
/// every machine can own every store, each has at most the quotient, rounded up. Stores stay with
/// their owner as far as possible, so that few stores move when a machine comes or goes.
package struct StoreSpread: Sendable, Hashable {
    /// The machine that should own each store.
    package private(set) var machines: [String: String] = [:]

    private let able: [String: Set<String>]
    private let owners: [String: String]
    private var loads: [String: Int]

    /// Computes the assignment.
    ///
    /// - Parameters:
    ///   - able: The machines that can own each store, including its owner.
    ///   - owners: The machine that owns each store; an owner that is not in `able` is ignored.
    package init(able: [String: Set<String>], owners: [String: String]) {
        self.able = able
        self.owners = owners
        loads = Dictionary(able.values.joined().map { ($0, 0) }) { first, _ in first }
        for (store, owner) in owners where able[store]?.contains(owner) == true {
            place(store, on: owner)
        }
        // Stores with the fewest candidates first, so that little has to be passed on afterwards.
        let rest = able.filter { machines[$0.key] == nil }
            .sorted { ($0.value.count, $0.key) < ($1.value.count, $1.key) }
        for (store, candidates) in rest {
            if let machine = best(of: candidates, for: store) { place(store, on: machine) }
        }
        while let way = wayToBalance() {
            for step in way { place(step.store, on: step.to) }
        }
    }

    private mutating func place(_ store: String, on machine: String) {
        if let before = machines[store] { loads[before, default: 1] -= 1 }
        machines[store] = machine
        loads[machine, default: 0] += 1
    }

    /// Returns the candidate with the fewest stores; among equals, the one that the store prefers.
    private func best(of candidates: Set<String>, for store: String) -> String? {
        candidates.min { one, other in
            let (load, otherLoad) = (loads[one, default: 0], loads[other, default: 0])
            guard load == otherLoad else { return load < otherLoad }
            return Self.preference(of: store, for: one) > Self.preference(of: store, for: other)
        }
    }

    /// Returns how much a store prefers a machine.
    ///
    /// The number is the same in every relay and differs for each pair. So the stores of a machine
    /// that goes are spread over all others.
    private static func preference(of store: String, for machine: String) -> UInt64 {
        SHA256.hash(data: Array("\(store)\u{0}\(machine)".utf8)).prefix(8)
            .reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: Passing on

    /// One store that a machine passes on to another.
    private struct Step {
        let store: String
        let from: String
        let to: String
        /// Whether its present owner would lose the store; another step is preferred.
        let isMove: Bool
        let preference: UInt64

        func isBetter(than other: Step) -> Bool {
            guard isMove == other.isMove else { return other.isMove }
            guard preference == other.preference else { return preference > other.preference }
            return (store, to) < (other.store, other.to)
        }
    }

    /// Returns the shortest chain of steps that takes a store from a machine and gives one to a
    /// machine with at least two fewer; `nil` if there is none.
    private func wayToBalance() -> [Step]? {
        let starts = loads.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        for (machine, load) in starts where load > 1 {
            if let way = way(from: machine, load: load) { return way }
        }
        return nil
    }

    private func way(from start: String, load: Int) -> [Step]? {
        var arrivals: [String: Step] = [:]
        var seen: Set = [start]
        var reached = [start]
        while !reached.isEmpty {
            var next: [String: Step] = [:]
            for step in reached.flatMap({ steps(from: $0) }) where !seen.contains(step.to) {
                if let known = next[step.to], !step.isBetter(than: known) { continue }
                next[step.to] = step
            }
            arrivals.merge(next) { first, _ in first }
            let ends = next.values.filter { loads[$0.to, default: 0] <= load - 2 }
            let least = ends.map { loads[$0.to, default: 0] }.min()
            let best = ends.filter { loads[$0.to, default: 0] == least }
                .min { $0.isBetter(than: $1) }
            if let best { return way(to: best, by: arrivals) }
            seen.formUnion(next.keys)
            reached = next.keys.sorted()
        }
        return nil
    }

    /// Returns the steps that pass on any store of a machine to any other machine that can own it.
    private func steps(from machine: String) -> [Step] {
        machines.filter { $0.value == machine }.keys.flatMap { store in
            able[store, default: []].subtracting([machine]).map { other in
                Step(
                    store: store, from: machine, to: other, isMove: owners[store] == machine,
                    preference: Self.preference(of: store, for: other))
            }
        }
    }

    private func way(to end: Step, by arrivals: [String: Step]) -> [Step] {
        var way = [end]
        while let before = arrivals[way[way.count - 1].from] { way.append(before) }
        return way
    }
}
