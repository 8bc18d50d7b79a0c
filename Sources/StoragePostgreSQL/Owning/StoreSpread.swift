import Crypto

/// Which machine should own which of several stores: a pure decision, the same wherever the same
/// is seen.
///
/// Every store that any machine can own is owned, and no machine has more than it must: no store
/// could be passed on, by way of others or not, to a machine that has two fewer. Where every
/// machine can own every store, that is the quotient, rounded up, at the most. What is owned stays
/// where it is as far as that goes, so that few stores move when a machine comes or goes.
package struct StoreSpread: Sendable, Hashable {
    /// The machine that should own each store.
    package private(set) var machines: [String: String] = [:]

    private let able: [String: Set<String>]
    private let owners: [String: String]
    private var loads: [String: Int]

    /// Decides.
    ///
    /// - Parameters:
    ///   - able: The machines that can own each store, its owner among them.
    ///   - owners: The machine that owns each store; one that is not able counts as none.
    package init(able: [String: Set<String>], owners: [String: String]) {
        self.able = able
        self.owners = owners
        loads = Dictionary(able.values.joined().map { ($0, 0) }) { first, _ in first }
        for (store, owner) in owners where able[store]?.contains(owner) == true {
            place(store, on: owner)
        }
        // Those with the fewest places first, so that little has to be passed on afterwards.
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

    /// The one with the fewest stores; among those, the one that the store prefers.
    private func best(of candidates: Set<String>, for store: String) -> String? {
        candidates.min { one, other in
            let (load, otherLoad) = (loads[one, default: 0], loads[other, default: 0])
            guard load == otherLoad else { return load < otherLoad }
            return Self.preference(of: store, for: one) > Self.preference(of: store, for: other)
        }
    }

    /// How much a store prefers a machine: a number that is the same everywhere, and drawn anew for
    /// each pair, so that stores of a machine that goes are spread over all others.
    private static func preference(of store: String, for machine: String) -> UInt64 {
        SHA256.hash(data: Array("\(store)\u{0}\(machine)".utf8)).prefix(8)
            .reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: Passing on

    /// A store that one machine passes on to another.
    private struct Step {
        let store: String
        let from: String
        let to: String
        /// Whether its owner would give it away: it is left alone if another one will do.
        let isMove: Bool
        let preference: UInt64

        func isBetter(than other: Step) -> Bool {
            guard isMove == other.isMove else { return other.isMove }
            guard preference == other.preference else { return preference > other.preference }
            return (store, to) < (other.store, other.to)
        }
    }

    /// The shortest way by which a machine with many stores has one fewer, and one that has two
    /// fewer has one more; `nil` if there is none.
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

    /// All stores of a machine, to all machines that can own them.
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
