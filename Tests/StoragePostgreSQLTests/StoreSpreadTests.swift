import RelayTestKit
import Testing

@testable import StoragePostgreSQL

/// Which machine should own which store, in some thousand random cases.
@Suite struct StoreSpreadTests {
    /// The machines, and the stores that each owns or could own.
    private struct World {
        var able: [String: Set<String>] = [:]
        var owners: [String: String] = [:]

        /// Creates a world of one to six machines and some stores.
        ///
        /// A machine runs a relay for a store with a probability of `percent`.
        init(_ generator: inout SeededGenerator, relays percent: Int) {
            let machines = (0..<Int.random(in: 1...6, using: &generator)).map { "m\($0)" }
            for store in 0..<Int.random(in: 1...14, using: &generator) {
                let there = machines.filter { _ in generator.chance(percent) }
                able["s\(store)"] = Set(there)
                if generator.chance(80) {
                    owners["s\(store)"] = there.randomElement(using: &generator)
                }
            }
        }

        var machines: Set<String> { able.values.reduce(into: []) { $0.formUnion($1) } }

        var spread: StoreSpread { StoreSpread(able: able, owners: owners) }

        /// Returns how many stores each machine has.
        func loads(_ spread: StoreSpread) -> [String: Int] {
            var loads = Dictionary(machines.map { ($0, 0) }) { first, _ in first }
            for machine in spread.machines.values { loads[machine, default: 0] += 1 }
            return loads
        }

        /// Returns the stores that would move.
        func moves(_ spread: StoreSpread) -> [String] {
            spread.machines.filter { store, machine in
                owners[store].map { $0 != machine } ?? false
            }.keys.sorted()
        }

        /// Returns whether the stores fit with at most `most` on each machine.
        ///
        /// It places one store after another, and moves others to make room if it can.
        func canDo(with most: Int) -> Bool {
            var places: [String: String] = [:]
            func make(room store: String, _ asked: inout Set<String>) -> Bool {
                for machine in able[store, default: []].sorted()
                where asked.insert(machine).inserted {
                    let there = places.filter { $0.value == machine }.keys.sorted()
                    if there.count < most {
                        places[store] = machine
                        return true
                    }
                    for other in there where make(room: other, &asked) {
                        places[store] = machine
                        return true
                    }
                }
                return false
            }
            return able.allSatisfy { store, machines in
                var asked: Set<String> = []
                return machines.isEmpty || make(room: store, &asked)
            }
        }
    }

    private static let count = 300

    @Test(arguments: Seeds.all) func `stores are spread evenly if every machine can own each`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<Self.count {
            let world = World(&generator, relays: 100)
            let spread = world.spread
            #expect(spread.machines.count == world.able.count)
            let loads = world.loads(spread).values
            let most = (world.able.count + loads.count - 1) / loads.count
            #expect(loads.max() ?? 0 <= most && (loads.max() ?? 0) - (loads.min() ?? 0) <= 1)
            // No more stores move than necessary: those beyond each machine's even share.
            var owned: [String: Int] = [:]
            for owner in world.owners.values { owned[owner, default: 0] += 1 }
            let share = world.able.count / loads.count
            let beyond = owned.values.filter { $0 > share }.map { $0 - share }
            let larger = min(world.able.count % loads.count, beyond.count)
            #expect(world.moves(spread).count == beyond.reduce(0, +) - larger)
        }
    }

    @Test(arguments: Seeds.all)
    func `every ownable store has a machine, and no machine has more than necessary`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<Self.count {
            let world = World(&generator, relays: Int.random(in: 20...95, using: &generator))
            let spread = world.spread
            for (store, machines) in world.able {
                let machine = spread.machines[store]
                #expect(machines.isEmpty ? machine == nil : machine.map(machines.contains) == true)
            }
            let most = world.loads(spread).values.max() ?? 0
            #expect(most == 0 || !world.canDo(with: most - 1))
        }
    }

    @Test(arguments: Seeds.all) func `hand-overs one after the other reach a stable state`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<Self.count {
            var world = World(&generator, relays: Int.random(in: 20...100, using: &generator))
            // Any store may move first. After each move the spread is decided again.
            var moved = 0
            while let store = world.moves(world.spread).randomElement(using: &generator) {
                world.owners[store] = world.spread.machines[store]
                moved += 1
                guard moved <= world.able.count * 2 else {
                    Issue.record("\(world.able) \(world.owners)")
                    break
                }
            }
        }
    }

    @Test(arguments: Seeds.all) func `only the stores of a machine that goes are moved`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<Self.count {
            var world = World(&generator, relays: 100)
            world.owners = world.spread.machines
            guard world.machines.count > 1, let gone = world.machines.max() else { continue }
            let before = world.owners
            for store in world.able.keys { world.able[store]?.remove(gone) }
            world.owners = world.owners.filter { $0.value != gone }
            let after = world.spread.machines
            #expect(before.allSatisfy { $0.value == gone || after[$0.key] == $0.value })
            // The machine comes back for stores that the others need not pass on.
            world.owners = after
            for store in world.able.keys { world.able[store]?.insert(gone) }
            let back = world.spread
            #expect(world.moves(back).allSatisfy { back.machines[$0] == gone })
            #expect(world.loads(back)[gone] == world.able.count / world.machines.count)
        }
    }

    @Test func `the result does not depend on the order of the input`() {
        var generator = SeededGenerator(seed: 13)
        for _ in 0..<Self.count {
            let world = World(&generator, relays: 70)
            var (able, owners) = ([String: Set<String>](), [String: String]())
            for (store, machines) in world.able.shuffled(using: &generator) {
                able[store] = []
                for machine in machines.sorted().reversed() { able[store]?.insert(machine) }
            }
            for (store, owner) in world.owners.shuffled(using: &generator) { owners[store] = owner }
            #expect(StoreSpread(able: able, owners: owners).machines == world.spread.machines)
        }
    }

    /// The random numbers that choose machines for stores are the same in every version, so that
    /// relays of two versions agree.
    @Test func `stores without an owner go to the same machines in every version`() {
        let machines: Set = ["a", "b", "c"]
        let able = Dictionary(uniqueKeysWithValues: (1...6).map { ("s\($0)", machines) })
        #expect(
            StoreSpread(able: able, owners: [:]).machines
                == ["s1": "b", "s2": "a", "s3": "c", "s4": "b", "s5": "c", "s6": "a"])
    }
}
