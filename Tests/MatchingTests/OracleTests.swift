import Foundation
import Matching
import PredicateLanguage
import RelayModel
import Testing

@Suite struct OracleTests {
    /// The number of predicates saved for each seed; `BELFRY_ORACLE_PREDICATES` sets it for a
    /// longer run.
    private static let predicates =
        ProcessInfo.processInfo.environment["BELFRY_ORACLE_PREDICATES"].flatMap(Int.init) ?? 1600
    /// The seeds; `BELFRY_ORACLE_SEEDS` sets them as `first-last`.
    private static let seeds: ClosedRange<UInt64> = {
        let text = ProcessInfo.processInfo.environment["BELFRY_ORACLE_SEEDS"] ?? "1-12"
        let ends = text.split(separator: "-").compactMap { UInt64($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : 1...12
    }()

    @Test(arguments: OracleTests.seeds)
    func `the index agrees with the reference evaluator while subscriptions come and go`(
        seed: UInt64
    ) throws {
        var world = RandomWorld(seed: seed)
        let index = SubscriptionIndex(seed: seed &* 77)
        var reference = ReferenceIndex()
        for round in 0..<Self.predicates / 40 {
            for _ in 0..<40 {
                let serial = UInt64(world.generator.below(900))
                let subscription = world.subscription(serial)
                index.insert(subscription)
                reference.insert(subscription)
            }
            for _ in 0..<20 {
                let serial = UInt64(world.generator.below(900))
                let isKnown = reference.remove(serial)
                #expect(index.remove(serial: serial) == isKnown)
            }
            for serial in index.takeMisfiled(most: 50) {
                if let known = reference.subscriptions[serial] { index.insert(known) }
            }
            try compare(index, reference, 12, &world, "seed \(seed), round \(round)")
            #expect(index.statistics.subscriptions == reference.subscriptions.count)
        }
        empty(index, of: reference)
    }

    /// Saves many more conditions at a time, from every dialect, so that lists grow long.
    ///
    /// In return it matches fewer changes.
    @Test(arguments: OracleTests.seeds)
    func `a large index of conditions in all dialects agrees with the reference evaluator`(
        seed: UInt64
    ) throws {
        var world = RandomWorld(seed: seed &* 1_000_003)
        var index = SubscriptionIndex(seed: seed)
        var reference = ReferenceIndex()
        let serials = Self.predicates * 2 / 3
        for round in 0..<8 {
            for _ in 0..<Self.predicates / 8 {
                var subscription = world.subscription(UInt64(world.generator.below(serials)))
                if let mixed = world.mixed() {
                    subscription.predicate = mixed
                    subscription.recordType = world.recordTypes.first
                    subscription.database = .public
                }
                index.insert(subscription)
                reference.insert(subscription)
            }
            for _ in 0..<Self.predicates / 20 {
                let serial = UInt64(world.generator.below(serials))
                let isKnown = reference.remove(serial)
                #expect(index.remove(serial: serial) == isKnown)
            }
            if round == 4 { index = try SubscriptionIndex(image: try index.image()) }
            try compare(index, reference, 16, &world, "seed \(seed), round \(round)")
        }
        empty(index, of: reference)
    }

    /// Compares the answers of the index and the reference for a number of changes.
    private func compare(
        _ index: SubscriptionIndex, _ reference: ReferenceIndex, _ changes: Int,
        _ world: inout RandomWorld, _ place: String
    ) throws {
        for _ in 0..<changes {
            let change = try world.change()
            let found = index.matches(for: change)
            let expected = reference.matches(for: change)
            if found != expected { report(found, expected, reference, change, place) }
        }
    }

    /// Checks that nothing is left of an index after all subscriptions are removed.
    private func empty(_ index: SubscriptionIndex, of reference: ReferenceIndex) {
        for serial in reference.subscriptions.keys { index.remove(serial: serial) }
        #expect(index.statistics.keys == 0)
        #expect(index.statistics.programs == 0)
    }

    private func report(
        _ found: [UInt64], _ expected: [UInt64], _ reference: ReferenceIndex,
        _ change: RecordChange, _ place: String
    ) {
        for serial in Set(found).symmetricDifference(expected).sorted().prefix(3) {
            let predicate = reference.subscriptions[serial]?.predicate
            let side = expected.contains(serial) ? "missed" : "invented"
            let image = change.judgedImage.map { "\($0.fields)" } ?? "no image"
            Issue.record(
                "\(place): \(side) \(serial) \(predicate?.canonicalText ?? "-") on \(image)")
        }
        if Set(found) == Set(expected) { Issue.record("\(place): out of order: \(found)") }
    }

    @Test func `every small predicate over two fields and three values agrees`() throws {
        let values: [FieldValue] = [.integer(1), .string("a"), .null]
        var leaves: [RecordPredicate.Node] = []
        for field in ["x", "y"] {
            for value in values {
                for comparator in [
                    RecordPredicate.Comparator.equal, .notEqual, .less, .greaterOrEqual,
                ] {
                    leaves.append(
                        .comparison(.init(.field(field), comparator, .constant(value))))
                }
            }
        }
        var nodes = leaves + leaves.map { .not($0) }
        for left in leaves {
            for right in leaves {
                nodes.append(.and([left, right]))
                nodes.append(.or([left, right]))
                nodes.append(.not(.or([left, .not(right)])))
            }
        }
        try check(nodes, values + [.double(1), .list([.integer(1)])])
    }

    private func check(_ nodes: [RecordPredicate.Node], _ values: [FieldValue]) throws {
        let type = try #require(RecordType(rawValue: "T"))
        let owner = try #require(UserID(rawValue: "ada"))
        let name = try #require(RecordName(rawValue: "r"))
        let index = SubscriptionIndex(seed: 5)
        var reference = ReferenceIndex()
        for (serial, node) in nodes.enumerated() {
            let subscription = IndexedSubscription(
                serial: UInt64(serial), database: .public, owner: owner, recordType: type,
                predicate: RecordPredicate(node))
            index.insert(subscription)
            reference.insert(subscription)
        }
        for x in values {
            for y in values {
                var change = RecordChange(.update, of: type, RecordID(recordName: name))
                change.after = RecordImage(["x": x, "y": y])
                #expect(index.matches(for: change) == reference.matches(for: change))
            }
        }
    }
}
