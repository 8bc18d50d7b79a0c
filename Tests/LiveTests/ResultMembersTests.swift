import Foundation
import PredicateLanguage
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import Live

/// Compares a result with the obvious computation: judge all, sort all, cut.
@Suite struct ResultMembersTests {
    /// The number of worlds in each test; `BELFRY_LIVE_WORLDS=5000` makes it 10⁶ steps.
    private static let worlds =
        ProcessInfo.processInfo.environment["BELFRY_LIVE_WORLDS"].flatMap(Int.init) ?? 200

    /// A world with few records and values, so that they often collide.
    private struct World {
        var generator: SeededGenerator
        let query: LiveQuery
        var records: [String: LiveRecord] = [:]
        var position: UInt64 = 1

        init(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            var query = LiveQuery(.result, Fixtures.subscription("q"), form: LiveForm())
            let fields = ["a", "b"].shuffled(using: &generator)
            query.order = fields.prefix(Int.random(in: 0...2, using: &generator)).map {
                LiveSortKey($0, isAscending: .random(using: &generator))
            }
            if !query.order.isEmpty {
                let count = Int.random(in: 1...4, using: &generator)
                query.limit =
                    [nil, .first(count), .last(count)][Int.random(in: 0..<3, using: &generator)]
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    query.start = LiveBound(.integer(1), isIncluded: .random(using: &generator))
                }
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    query.end = LiveBound(.integer(3), isIncluded: .random(using: &generator))
                }
            }
            if seed % 3 == 0 { Self.order(&query, asChildren: &generator) }
            self.query = query
            self.generator = generator
        }

        /// Draws an order and bounds by the rules of Firebase or Wilddog.
        private static func order(
            _ query: inout LiveQuery, asChildren generator: inout SeededGenerator
        ) {
            let orderings: [FirebaseQuery.Ordering] = [
                .child(["a"]), .child(["m", "x"]), .key, .value, .priority,
            ]
            let ordering = orderings[Int.random(in: 0..<5, using: &generator)]
            var firebase = FirebaseQuery(
                kinds: .random(using: &generator) ? .ordered : .sameAsBound)
            firebase = (try? firebase.ordered(by: ordering)) ?? firebase
            for isStart in [true, false] where Int.random(in: 0..<3, using: &generator) == 0 {
                let name = names.randomElement(using: &generator) ?? ""
                let value = values.randomElement(using: &generator) ?? .null
                let key = ordering == .key || .random(using: &generator) ? nil : name
                let bound = ordering == .key ? .string(name) : value
                let isIncluded = Bool.random(using: &generator)
                let bounded =
                    try? isStart
                    ? firebase.starting(at: bound, key: key, isIncluded: isIncluded)
                    : firebase.ending(at: bound, key: key, isIncluded: isIncluded)
                firebase = bounded ?? firebase
            }
            query.order = []
            query.start = nil
            query.end = nil
            query.firebase = firebase
        }

        static let names = ["r1", "R1", "7", "07", "10", "-2", "r\u{FFFF}", "r😀"]
        static let values: [FieldValue] = [
            .null, .bool(false), .bool(true), .integer(1), .double(1.5), .integer(10),
            .string("a"), .string("B"), .string("\u{FFFF}"), .string("😀"),
        ]

        /// Returns whether a record fits the condition.
        static func fits(_ record: LiveRecord) -> Bool {
            record.record.fields["fits"] == .bool(true)
        }

        /// The expected records, computed from scratch.
        var oracle: [LiveRecord] {
            if let firebase = query.firebase { return window(of: firebase) }
            let order = ResultOrder(query)
            let all = records.values.filter(Self.fits).map(order.member)
                .filter(order.admits).sorted(by: order.precedes)
            let cut =
                switch query.limit {
                case nil: all[...]
                case .first(let count): all.prefix(count)
                case .last(let count): all.suffix(count)
                }
            return cut.map(\.record)
        }

        /// Returns the records that Firebase's own rules select.
        private func window(of firebase: FirebaseQuery) -> [LiveRecord] {
            let limit: FirebaseQuery.Limit? =
                switch query.limit {
                case nil: nil
                case .first(let count): .first(count)
                case .last(let count): .last(count)
                }
            let children = records.values.filter(Self.fits).map { record in
                let fields = record.record.fields
                return FirebaseChild(
                    key: record.key,
                    value: firebase.ordering == .value
                        ? fields["value"] ?? .map(fields) : .map(fields),
                    priority: fields["priority"] ?? .null)
            }
            let query = limit.flatMap { try? firebase.limited(to: $0) } ?? firebase
            return query.window(of: children).compactMap { records[$0.key] }
        }

        /// Creates, changes or removes a record; returns its name and the record before and after.
        mutating func step() -> (name: String, before: LiveRecord?, after: LiveRecord?) {
            let name = Self.names[Int.random(in: 0..<8, using: &generator)]
            position += 1
            let before = records[name]
            var after: LiveRecord?
            if before == nil || Int.random(in: 0..<4, using: &generator) > 0 {
                var fields: RecordFields = [
                    "fits": .bool(Int.random(in: 0..<4, using: &generator) > 0)
                ]
                for field in ["a", "b"] where Int.random(in: 0..<5, using: &generator) > 0 {
                    fields[field] = .integer(Int64.random(in: 0..<4, using: &generator))
                }
                if query.firebase != nil {
                    for field in ["a", "value", "priority"] {
                        let value = Self.values.randomElement(using: &generator) ?? .null
                        fields[field] = value.isNull ? nil : value
                    }
                    let inner = Self.values.randomElement(using: &generator) ?? .null
                    fields["m"] = .map(["x": inner])
                }
                let stamp = RecordStamp(at: Fixtures.moment, userID: nil, deviceID: nil)
                after = LiveRecord(
                    ShadowRecord(
                        recordID: RecordID(recordName: Fixtures.identifier(name)),
                        recordType: Fixtures.identifier("Artwork"), fields: fields,
                        created: stamp, modified: stamp, source: .cloudKit,
                        position: LogPosition(position)), readers: nil)
            }
            records[name] = after
            return (name, before, after)
        }

        /// Performs a step on a result as well; returns the record's name, its former member and
        /// the items that were told.
        mutating func step(
            of members: inout ResultMembers
        ) -> (name: String, before: LiveRecord?, items: [LiveItem]) {
            let (name, before, after) = step()
            let wasMember = before.map(Self.fits) ?? false
            var step = RecordStep(from: before, to: after)
            let outcome = members.replace(
                in: &step, wasMember: wasMember, fits: after.map(Self.fits) ?? false, .entered,
                showing: nil)
            #expect(outcome.isMember == members.all.contains { $0.record === after })
            return (name, wasMember ? before : nil, outcome.items?.all ?? [])
        }
    }

    /// A client that applies items to what it shows.
    private struct Client {
        var shown: [RecordID: LiveRecord]
        let isOrdered: Bool
        var order: [RecordID]

        init(_ records: [LiveRecord], isOrdered: Bool) {
            shown = Dictionary(records.map { ($0.id, $0) }) { first, _ in first }
            order = records.map(\.id)
            self.isOrdered = isOrdered
        }

        /// Returns the index after `previous`, or `nil` if that record is not there yet.
        private func place(after previous: RecordID?) -> Int? {
            guard let previous else { return 0 }
            return order.firstIndex(of: previous).map { $0 + 1 }
        }

        mutating func apply(_ items: [LiveItem]) {
            for item in items {
                let id = item.record.id
                order.removeAll { $0 == id }
                guard item.operation != .removed else {
                    #expect(shown.removeValue(forKey: id) != nil)
                    continue
                }
                #expect((shown[id] != nil) == (item.operation == .changed))
                shown[id] = item.record
            }
            // The items name the neighbours in the final order, so each is placed once its
            // neighbour is.
            var rest = items.filter { $0.operation != .removed }
            while let index = rest.firstIndex(where: { place(after: $0.previous) != nil }) {
                let item = rest.remove(at: index)
                order.insert(item.record.id, at: place(after: item.previous) ?? 0)
            }
            #expect(rest.isEmpty)
        }
    }

    private static func check(_ client: Client, _ world: World) {
        let oracle = world.oracle
        #expect(client.shown.count == oracle.count)
        for record in oracle {
            #expect(client.shown[record.id].map { $0.isSame(as: record, nil) } == true)
        }
        if client.isOrdered { #expect(client.order == oracle.map(\.id)) }
    }

    @Test(
        "a client that applies the items shows what judging all records gives",
        arguments: 0..<worlds)
    func followsTheOracle(seed: Int) {
        var world = World(seed: UInt64(seed))
        var members = ResultMembers(world.query)
        var client = Client([], isOrdered: world.query.isOrdered)
        for _ in 0..<200 {
            client.apply(world.step(of: &members).items)
            Self.check(client, world)
        }
    }

    @Test("a returning client is told the difference from any position", arguments: 0..<worlds)
    func resumes(seed: Int) {
        var world = World(seed: UInt64(seed) &+ 1_000)
        var members = ResultMembers(world.query)
        for _ in 0..<20 {
            var client = Client(world.oracle, isOrdered: world.query.isOrdered)
            var touched: [RecordID: LiveRecord?] = [:]
            for _ in 0..<Int.random(in: 0..<8, using: &world.generator) {
                let step = world.step(of: &members)
                let id = RecordID(recordName: Fixtures.identifier(step.name))
                if touched[id] == nil { touched.updateValue(step.before, forKey: id) }
            }
            client.apply(members.difference(since: touched, showing: nil))
            Self.check(client, world)
        }
    }
}
