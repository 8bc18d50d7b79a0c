import PredicateLanguage
import RelayModel
import Synchronization
import Testing

@testable import Matching

/// The index uses the reference evaluation wherever a condition could take too many steps.
@Suite struct BudgetTests {
    private func subscription(
        _ serial: UInt64, _ predicate: RecordPredicate
    ) throws -> IndexedSubscription {
        IndexedSubscription(
            serial: serial, database: .public, owner: try #require(UserID(rawValue: "ada")),
            recordType: RecordType(rawValue: "Art"), predicate: predicate)
    }

    private func change(_ image: RecordImage) throws -> RecordChange {
        var change = RecordChange(
            .update, of: try #require(RecordType(rawValue: "Art")),
            RecordID(recordName: try #require(RecordName(rawValue: "r"))))
        change.after = image
        return change
    }

    /// Returns fields with lists so long that products of two of them exceed the budget now and
    /// then.
    private func fields(_ world: inout RandomWorld) -> RecordFields {
        var fields = world.fields()
        for name in ["tags", "title", "place"] where world.generator.holds(oneIn: 2) {
            let count = world.generator.pick([3, 30, 600, 3_000])
            let values = (0..<5).map { _ in world.scalar() }
            fields[name] = .list((0..<count).map { values[$0 % values.count] })
        }
        return fields
    }

    private func heavy(_ world: inout RandomWorld) -> RecordPredicate.Node {
        typealias Expression = RecordPredicate.Expression
        let field = Expression.field(world.generator.pick(RandomWorld.fields))
        let other = Expression.field(world.generator.pick(RandomWorld.fields))
        let quantifier = world.generator.pick(RecordPredicate.Quantifier.allCases)
        switch world.generator.below(4) {
        case 0: return .comparison(.init(field, .in, other, quantifier: quantifier))
        case 1: return .comparison(.init(field, .equal, other, quantifier: quantifier))
        case 2:
            let inner = RecordPredicate.Node.comparison(
                .init(.variable("x"), world.generator.pick([.in, .equal]), other))
            return .comparison(
                .init(
                    .member(
                        of: .subquery(field, variable: "x", inner),
                        RecordPredicate.RecordPath([.collection(.count)])),
                    .greater, .constant(.integer(Int64(world.generator.below(3))))))
        default:
            var comparison = RecordPredicate.Comparison(
                field, .contains, other, quantifier: .any)
            comparison.rules = .realm
            return .comparison(comparison)
        }
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `conditions with products agree with the reference evaluation`(
        seed: UInt64
    ) throws {
        var world = RandomWorld(seed: seed)
        let index = SubscriptionIndex(seed: seed)
        var reference = ReferenceIndex()
        for serial in 1...60 as ClosedRange<UInt64> {
            var nodes = [heavy(&world), world.node(depth: 2)]
            if world.generator.holds(oneIn: 2) { nodes.reverse() }
            var node: RecordPredicate.Node =
                world.generator.holds(oneIn: 2) ? .and(nodes) : .or(nodes)
            if world.generator.holds(oneIn: 3) { node = .not(node) }
            let saved = try subscription(serial, RecordPredicate(node))
            index.insert(saved)
            reference.insert(saved)
        }
        for _ in 0..<12 {
            let image = RecordImage(
                fields(&world),
                completeness: world.generator.holds(oneIn: 3) ? .partial : .full)
            let change = try change(image)
            var serials: [UInt64] = []
            #expect(index.matches(for: change, mostSteps: .max, into: &serials) == nil)
            #expect(serials == reference.matches(for: change))
        }
        let counted = index.errors.values.reduce(0, +)
        #expect(counted > 0)
    }

    /// The attack: one condition and one record of 689 kB, after which nothing else was matched.
    @Test func `an innocent change is matched after an attack of a record and a condition`()
        throws
    {
        let index = SubscriptionIndex(seed: 3)
        let nested =
            "SUBQUERY(a, $x, SUBQUERY(a, $y, SUBQUERY(a, $z, $x + $y == $z - 1).@count > 0)"
            + ".@count > 0).@count > 0"
        index.insert(try subscription(1, RecordPredicate(format: nested)))
        index.insert(try subscription(2, RecordPredicate(format: "title == 'x'")))
        let list = FieldValue.list((0..<100_000).map { .integer(Int64($0) * 3) })
        let attack = try change(RecordImage(["a": list, "title": .string("y")]))
        var serials: [UInt64] = []
        #expect(index.matches(for: attack, into: &serials) == nil)
        #expect(serials == [])
        #expect(index.errors == [1: 1])
        let innocent = try change(RecordImage(["title": .string("x")]))
        #expect(index.matches(for: innocent) == [2])
    }

    @Test func `a change with too many steps names the dearest conditions`() throws {
        let index = SubscriptionIndex(seed: 3)
        for serial in 1...20 as ClosedRange<UInt64> {
            let format = "SUBQUERY(a, $x, $x == \(serial)).@count > 1000"
            index.insert(try subscription(serial, RecordPredicate(format: format)))
        }
        index.insert(try subscription(77, RecordPredicate(format: "title == 'x'")))
        let list = FieldValue.list((0..<20_000).map { .integer(Int64($0)) })
        let change = try change(RecordImage(["a": list, "title": .string("x")]))
        var serials: [UInt64] = []
        let dear = try #require(
            index.matches(for: change, mostSteps: 8_000_000, into: &serials))
        #expect(serials == [])
        #expect(dear.steps > 8_000_000)
        #expect(dear.steps < 20_000_000)
        let blamed = dear.blamed { _ in "one" }
        #expect(!blamed.isEmpty)
        #expect(Set(blamed).isSubset(of: Set(1...20)))
        var stored: DearChange?
        var erring: [UInt64] = []
        let text = JSONValue.object(change.storedForm).text
        let isRead = index.matches(
            forStored: text, appendedAt: Timestamp(seconds: 0), mostSteps: 8_000_000,
            into: &serials, erring: &erring, dear: &stored)
        #expect(isRead)
        #expect(stored == dear)
        #expect(index.matches(for: change) == [77])
    }

    @Test func `conditions that may not be judged take no steps and are not to blame`() throws {
        let index = SubscriptionIndex(seed: 3)
        // Numbers 1 and 11, 2 and 12 and so on share a condition each.
        for serial in 1...20 as ClosedRange<UInt64> {
            let format = "SUBQUERY(a, $x, $x == \(serial % 10)).@count > 1000"
            index.insert(try subscription(serial, RecordPredicate(format: format)))
        }
        index.insert(try subscription(77, RecordPredicate(format: "title == 'x'")))
        let list = FieldValue.list((0..<20_000).map { .integer(Int64($0)) })
        var change = try change(RecordImage(["a": list, "title": .string("x")]))
        var serials: [UInt64] = []
        #expect(index.matches(for: change, mostSteps: 1_000_000, into: &serials) != nil)
        let without = index.matches(for: change, mostSteps: 1_000_000, into: &serials) { $0 == 77 }
        #expect(without == nil)
        #expect(serials == [77])
        let dear = try #require(
            index.matches(for: change, mostSteps: 1_000_000, into: &serials) { $0 < 10 })
        #expect(!dear.costs.isEmpty)
        #expect(dear.costs.allSatisfy { $0.serial < 10 })
        // A stored text that names readers, and not everybody, is judged only once it is decoded.
        for (readers, isJudged) in [(["ada"], false), (["ada", RecordChange.everybody], true)] {
            change.readers = readers
            var stored: DearChange?
            var erring: [UInt64] = []
            let isRead = index.matches(
                forStored: JSONValue.object(change.storedForm).text,
                appendedAt: Timestamp(seconds: 0), mostSteps: .max, into: &serials,
                erring: &erring, dear: &stored)
            #expect(isRead == isJudged)
            #expect(stored == nil)
        }
    }

    /// Asking about a million users takes a tenth of a second, evaluating such a condition nothing.
    @Test func `users of a condition that takes little are not asked about one by one`() throws {
        let index = SubscriptionIndex(seed: 3)
        for serial in 1...100 as ClosedRange<UInt64> {
            index.insert(try subscription(serial, RecordPredicate(format: "NOT title == 'y'")))
        }
        // Twenty share a condition that takes long, which none of the readers has.
        for serial in 101...120 as ClosedRange<UInt64> {
            let format = "SUBQUERY(a, $x, $x == -1).@count > 1000"
            index.insert(try subscription(serial, RecordPredicate(format: format)))
        }
        for serial in 121...160 as ClosedRange<UInt64> {
            let format = "SUBQUERY(a, $x, $x == -2).@count > 1000"
            index.insert(try subscription(serial, RecordPredicate(format: format)))
        }
        index.insert(try subscription(177, RecordPredicate(format: "title == 'x'")))
        let list = FieldValue.list((0..<20_000).map { .integer(Int64($0)) })
        let change = try change(RecordImage(["a": list, "title": .string("x")]))
        var (serials, asked): ([UInt64], Set<UInt64>) = ([], [])
        let dear = index.matches(for: change, mostSteps: 3_000_000, into: &serials) { serial in
            asked.insert(serial)
            return serial == 177
        }
        #expect(dear == nil)
        #expect(Set(serials).subtracting(1...100) == [177])
        #expect(asked.isDisjoint(with: 1...100))
        #expect(asked.isSuperset(of: 121...160))
        // What readers pay for is counted as before.
        let own = index.matches(for: change, mostSteps: 1_000_000, into: &serials) { $0 > 100 }
        #expect(own != nil)
        #expect(own?.costs.allSatisfy { $0.serial > 100 } == true)
    }

    @Test func `an error is counted once where a change is judged in two passes`() throws {
        let index = SubscriptionIndex(seed: 3)
        // These are filed in different parts of the index.
        let far = UInt64(1) << 28
        index.insert(try subscription(1, RecordPredicate(format: "title + 1 == 2")))
        for serial in 1...3 as ClosedRange<UInt64> {
            let format = "SUBQUERY(a, $x, $x == \(serial)).@count > 1000"
            index.insert(try subscription(far + serial, RecordPredicate(format: format)))
        }
        let list = FieldValue.list((0..<20_000).map { .integer(Int64($0)) })
        let change = try change(RecordImage(["a": list, "title": .string("x")]))
        var (serials, erring): ([UInt64], [UInt64]) = ([], [])
        let dear = index.matches(
            for: change, now: nil, mostSteps: .max, into: &serials, erring: &erring
        ) { $0 == 1 }
        #expect(dear == nil)
        #expect(erring == [1])
        #expect(index.errors == [1: 1])
        // A change that is given up is judged again elsewhere.
        #expect(index.matches(for: change, mostSteps: 1_000_000, into: &serials) != nil)
        #expect(index.errors == [1: 1])
    }

    @Test func `who may be told is not asked while that takes no time`() throws {
        let index = SubscriptionIndex(seed: 3)
        for serial in 1...20 as ClosedRange<UInt64> {
            index.insert(try subscription(serial, RecordPredicate(format: "a + 0 == \(serial)")))
        }
        let change = try change(RecordImage(["a": .integer(7)]))
        var (serials, asked): ([UInt64], Int) = ([], 0)
        let dear = index.matches(for: change, into: &serials) { _ in
            asked += 1
            return false
        }
        #expect(dear == nil)
        #expect(serials == [7])
        #expect(asked == 0)
    }

    /// Returns an index whose clock is a second later at every reading.
    private static func indexByTime() -> SubscriptionIndex {
        let clock = SteppingClock()
        return SubscriptionIndex(seed: 3) { clock.next() }
    }

    private final class SteppingClock: Sendable {
        private let time = Mutex<UInt64>(0)

        func next() -> UInt64 {
            time.withLock { time in
                time += 1_000_000_000
                return time
            }
        }
    }

    @Test func `an evaluation that is slower than its steps counts by time`() throws {
        let index = Self.indexByTime()
        for serial in 1...5 as ClosedRange<UInt64> {
            let format = "title MATCHES 'x+\(serial)'"
            index.insert(try subscription(serial, RecordPredicate(format: format)))
        }
        index.insert(try subscription(77, RecordPredicate(format: "title == 'x'")))
        let change = try change(RecordImage(["title": .string("x")]))
        var serials: [UInt64] = []
        let dear = try #require(
            index.matches(for: change, mostSteps: 1_200_000_000, into: &serials))
        #expect(serials == [])
        #expect(dear.steps == 1_500_000_000)
        #expect(dear.costs.map(\.steps) == [500_000_000, 500_000_000, 500_000_000])
        #expect(index.matches(for: change, mostSteps: 2_500_000_000, into: &serials) == nil)
        #expect(serials == [77])
    }

    @Test func `evaluations on a long text count by time too`() throws {
        let index = Self.indexByTime()
        for serial in 1...5 as ClosedRange<UInt64> {
            let format = "title == 'x' AND NOT text TOKENMATCHES 'word\(serial)'"
            index.insert(try subscription(serial, RecordPredicate(format: format)))
        }
        for serial in 6...9 as ClosedRange<UInt64> {
            let format = "title == 'y' AND text LIKE '*muck\(serial)*'"
            index.insert(try subscription(serial, RecordPredicate(format: format)))
        }
        let short = try change(RecordImage(["title": .string("x"), "text": .string("word1")]))
        #expect(index.matches(for: short) == [2, 3, 4, 5])
        let text = FieldValue.string(String(repeating: "much text ", count: 20_000))
        let long = try change(RecordImage(["title": .string("x"), "text": text]))
        var serials: [UInt64] = []
        let dear = try #require(
            index.matches(for: long, mostSteps: 1_200_000_000, into: &serials))
        #expect(dear.steps == 1_500_000_000)
        #expect(dear.costs.map(\.steps) == [500_000_000, 500_000_000, 500_000_000])
        #expect(index.matches(for: long, mostSteps: .max, into: &serials) == nil)
        #expect(serials == [1, 2, 3, 4, 5])
        let near = try change(RecordImage(["title": .string("y"), "text": text]))
        let dearPatterns = try #require(
            index.matches(for: near, mostSteps: 1_200_000_000, into: &serials))
        #expect(dearPatterns.costs.count == 3)
        #expect(index.matches(for: near, mostSteps: .max, into: &serials) == nil)
        #expect(serials == [])
    }

    /// Each of these conditions goes through the whole list once more.
    @Test func `values behind members are searched for in bounded time`() throws {
        let index = Self.indexByTime()
        let forms = [
            "ANY list.a% == 'x'", "title == 'x' AND NOT list.a% ==[c] 'y'",
            "title == 'x' AND list.a% >= 1 AND list.a% < 2", "list.a% >= 1 AND list.a% < 2",
            "list.a% BEGINSWITH 'x'", "title != 'y' AND ANY list.a% == 3",
        ]
        for serial in 1...60 as ClosedRange<UInt64> {
            let form = forms[Int(serial) % forms.count].replacing("%", with: "\(serial)")
            index.insert(try subscription(serial, RecordPredicate(format: form)))
        }
        index.insert(try subscription(77, RecordPredicate(format: "title == 'x'")))
        index.insert(try subscription(78, RecordPredicate(format: "title != 'y'")))
        let list = FieldValue.list([.map(["a6": .string("x")]), .map(["a1": .integer(3)])])
        let change = try change(RecordImage(["list": list, "title": .string("x")]))
        var serials: [UInt64] = []
        let dear = try #require(
            index.matches(for: change, mostSteps: 1_200_000_000, into: &serials))
        #expect(serials == [])
        #expect(!dear.isOfTexts)
        #expect(Set(dear.costs.map(\.serial)) == Set(1...60))
        // A match that gives up early is repeated later, so it need not say which condition is to
        // blame.
        let early = index.matches(for: change, mostSteps: 250_000, into: &serials)
        #expect(early?.costs.isEmpty == true)
        #expect(early?.isOfTexts == false)
        #expect(!dear.blamed { _ in "one" }.isEmpty)
        var stored: DearChange?
        var erring: [UInt64] = []
        let isRead = index.matches(
            forStored: JSONValue.object(change.storedForm).text,
            appendedAt: Timestamp(seconds: 0), mostSteps: 1_200_000_000, into: &serials,
            erring: &erring, dear: &stored)
        #expect(isRead)
        #expect(Set(stored?.costs.map(\.serial) ?? []) == Set(1...60))
        #expect(index.matches(for: change, mostSteps: .max, into: &serials) == nil)
        #expect(serials.contains(6))
        #expect(serials.contains(77))
        #expect(serials.contains(78))
    }

    @Test func `the many dear conditions of one user do not end another's only one`() {
        let costs = (1...60 as ClosedRange<UInt64>).map {
            DearChange.Cost(serial: $0, steps: 10_000_000)
        }
        let change = DearChange(steps: 600_000_000, costs: costs)
        // Every fourth serial from 2 on is mallory's, serial 1 is ann's, and others own the rest.
        let blamed = change.blamed { serial in
            serial % 4 == 2 ? "mallory" : serial == 1 ? "ann" : "user \(serial / 4)"
        }
        #expect(blamed.count == 30)
        #expect(blamed.prefix(15).allSatisfy { $0 % 4 == 2 })
        #expect(!blamed.contains(1))
        // If every condition has another owner, the newest are to blame.
        #expect(change.blamed { $0 } == Array((31...60).reversed()))
        #expect(DearChange(steps: 1, costs: []).blamed { $0 } == [])
        let one = DearChange(steps: 9, costs: [.init(serial: 7, steps: 9)])
        #expect(one.blamed { _ in Int?.none } == [7])
    }

    @Test func `searching in a text that nearly matches everywhere takes linear time`() throws {
        let index = SubscriptionIndex(seed: 3)
        let near = String(repeating: "a", count: 40_000)
        for (serial, text) in [(1, near + "b"), (2, near), (3, "b" + near)] as [(UInt64, String)] {
            let predicate = RecordPredicate(
                .comparison(.init(.field("text"), .contains, .constant(.string(text)))))
            index.insert(try subscription(serial, predicate))
        }
        func found(_ text: String) throws -> [UInt64] {
            index.matches(for: try change(RecordImage(["text": .string(text)])))
        }
        // A comparison at every position would compare 40 billion bytes.
        #expect(try found(near + near + near + "c" + near) == [2])
        #expect(try found(near + near + "b") == [1, 2])
        #expect(try found("cb" + near + "ab") == [1, 2, 3])
    }

    // MARK: Decoding

    /// Folding a megabyte of marks takes a fifth of a second, which no condition is to blame for.
    @Test func `texts that take long to fold are given up quickly`() throws {
        let index = SubscriptionIndex(seed: 7)
        index.insert(
            try subscription(1, RecordPredicate(format: "title ==[c] 'x'", arguments: [])))
        let marks = String(repeating: "a\u{301}\u{323}", count: 20_000)
        for (text, isSlow) in [(marks, true), (String(repeating: "É", count: 200_000), false)] {
            let posted = try change(RecordImage(["title": .string(text)]))
            var serials: [UInt64] = [9]
            let dear = index.matches(for: posted, mostSteps: 1_000_000, into: &serials)
            #expect((dear != nil) == isSlow)
            #expect(dear?.costs.isEmpty ?? true)
            #expect(serials == [])
            let whole = index.matches(for: posted, into: &serials)
            #expect(whole == nil)
            var stored: DearChange?
            var erring: [UInt64] = []
            let isJudged = index.matches(
                forStored: JSONValue.object(posted.storedForm).text,
                appendedAt: Timestamp(seconds: 0), mostSteps: 1_000_000, into: &serials,
                erring: &erring, dear: &stored)
            #expect(isJudged)
            #expect((stored != nil) == isSlow)
        }
        // By Minapp's rules, each element of a list of dates takes a microsecond.
        index.insert(
            try subscription(
                2, RecordPredicate(where: ["seen": ["$gt": "2023-11-14T22:13:20Z"]])))
        let dates = Array(repeating: FieldValue.string("2023-11-14T22:13:20Z"), count: 20_000)
        let many = try change(RecordImage(["seen": .list(dates)]))
        var fired: [UInt64] = []
        let late = index.matches(for: many, mostSteps: 1_000_000, into: &fired)
        #expect(late != nil)
        // An evaluation that was given up must leave no state behind.
        let small = try change(RecordImage(["title": .string("X")]))
        var serials: [UInt64] = []
        let dear = index.matches(for: small, mostSteps: 1_000_000, into: &serials)
        #expect(dear == nil)
        #expect(serials == [1])
    }
}
