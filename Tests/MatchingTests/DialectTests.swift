import Foundation
import Matching
import PredicateLanguage
import RelayModel
import Testing

/// Conditions by each dialect's own rules: the index must agree with the reference evaluation.
@Suite struct DialectTests: ArtworkSuite {
    /// The number of conditions saved for each seed; `BELFRY_ORACLE_DIALECTS` sets it for a longer
    /// run.
    private static let conditions =
        ProcessInfo.processInfo.environment["BELFRY_ORACLE_DIALECTS"].flatMap(Int.init) ?? 400
    private static let appended = Timestamp(seconds: 1_700_000_000)

    @Test(arguments: WrittenDialect.allCases, 1...4 as ClosedRange<UInt64>)
    func `the index agrees with the reference evaluator`(
        dialect: WrittenDialect, seed: UInt64
    ) throws {
        var world = DialectWorld(dialect, seed: seed &* 7919)
        var index = SubscriptionIndex(seed: seed)
        var reference = ReferenceIndex()
        for round in 0..<4 {
            for _ in 0..<Self.conditions / 4 {
                let serial = world.world.generator.below(Self.conditions * 2 / 3)
                let saved = try subscription(serial, world.condition())
                index.insert(saved)
                reference.insert(saved)
            }
            for _ in 0..<Self.conditions / 20 {
                let serial = UInt64(world.world.generator.below(Self.conditions * 2 / 3))
                let isKnown = reference.remove(serial)
                #expect(index.remove(serial: serial) == isKnown)
            }
            if round == 2 { index = try SubscriptionIndex(image: try index.image()) }
            for _ in 0..<40 { try compare(index, reference, &world, "\(dialect) \(seed)") }
        }
        for serial in reference.subscriptions.keys { index.remove(serial: serial) }
        #expect(index.statistics.keys == 0)
        #expect(index.statistics.programs == 0)
    }

    /// Compares the answers for changes, both as values and in the stored form.
    private func compare(
        _ index: SubscriptionIndex, _ reference: ReferenceIndex, _ world: inout DialectWorld,
        _ place: String
    ) throws {
        let isPartial = world.world.generator.holds(oneIn: 5)
        let change = try change(world.fields(), isPartial ? .partial : .full)
        let expected = reference.matches(for: change)
        let found = index.matches(for: change)
        for serial in Set(found).symmetricDifference(expected).sorted().prefix(3) {
            let side = expected.contains(serial) ? "missed" : "invented"
            let text = reference.subscriptions[serial]?.predicate?.canonicalText ?? "-"
            let fields = change.after?.fields ?? [:]
            Issue.record("\(place): \(side) \(text) on \(isPartial ? "partial " : "")\(fields)")
        }
        #expect(found == found.sorted())
        // By NSPredicate's rules the first element of a dictionary that gives an answer or an
        // error decides, and two equal dictionaries may differ in their order.
        guard world.dialect.takesAny else { return }
        var stored: [UInt64] = []
        let text = JSONValue.object(change.storedForm).text
        let isRead = index.matches(
            forStored: text, appendedAt: Self.appended, into: &stored)
        #expect(isRead)
        let read = try RecordChange(storedForm: try JSONValue(parsing: text))
        #expect(stored == index.matches(for: read), "\(place): \(text)")
    }

    // MARK: Keys

    private struct PathCase: CustomTestStringConvertible {
        /// The condition; `#` is the number of the subscription.
        var condition: String
        /// The fields of the change that the condition of subscription 7 matches.
        var fields: RecordFields
        var testDescription: String { condition }
    }

    private static let cases: [PathCase] = [
        PathCase(condition: "name == 'n#'", fields: ["name": .string("n7")]),
        PathCase(condition: "'n#' == name", fields: ["name": .bytes(Array("n7".utf8))]),
        PathCase(condition: "name ==[c] 'É#'", fields: ["name": .string("é7")]),
        PathCase(condition: "name == 'n#'", fields: ["name": .list([.string("n7"), .null])]),
        PathCase(condition: "ANY name == 'n#'", fields: ["name": .list([.string("n7")])]),
        PathCase(condition: "'n#' IN name", fields: ["name": .list([.string("n7")])]),
        PathCase(condition: "name IN {'a#', 'b#'}", fields: ["name": .string("b7")]),
        PathCase(
            condition: "name IN {'a#', 'b#'}",
            fields: ["name": .list([.string("a7"), .string("b7")])]),
        PathCase(condition: "name BEGINSWITH 'ab#x'", fields: ["name": .string("ab7xyz")]),
        PathCase(condition: "name BEGINSWITH[c] 'ab#x'", fields: ["name": .string("AB7XYZ")]),
        PathCase(condition: "name CONTAINS 'q#w'", fields: ["name": .string("a q7w b")]),
        PathCase(condition: "name ENDSWITH 'q#w'", fields: ["name": .string("a q7w")]),
        PathCase(condition: "name LIKE 'ab#x*'", fields: ["name": .string("ab7x and")]),
        PathCase(condition: "score == #", fields: ["score": .double(7)]),
        PathCase(condition: "score >= # AND score <= #", fields: ["score": .integer(7)]),
        PathCase(condition: "score >= #.25 AND score < #.5", fields: ["score": .double(7.3)]),
        PathCase(condition: "score BETWEEN {#.25, #.5}", fields: ["score": .double(7.3)]),
        PathCase(
            condition: "score >= #.25 AND score < #.5",
            fields: ["score": .list([.double(7.3), .double(7.4)])]),
        PathCase(
            condition: "home.city == 'c#'", fields: ["home": .map(["city": .string("c7")])]),
        PathCase(
            condition: "home['city'] == 'c#'", fields: ["home": .map(["city": .string("c7")])]),
        PathCase(
            condition: "home['city'].name BEGINSWITH[c] 'c#x'",
            fields: ["home": .map(["city": .map(["name": .string("C7X")])])]),
        PathCase(
            condition: "name[1] == 'n#'",
            fields: ["name": .list([.string("n8"), .string("n7")])]),
        PathCase(
            condition: "name[FIRST] IN {'n#', 'm#'}",
            fields: ["name": .list([.string("n7"), .string("n8")])]),
        PathCase(
            condition: "score[LAST] >= #.25 AND score[LAST] < #.5",
            fields: ["score": .list([.double(9.3), .double(7.3)])]),
        PathCase(
            condition: "home GEOWITHIN geocircle([10.#1, 20], 0.000001)",
            fields: [
                "home": Location(latitude: 20, longitude: 10.71).map(FieldValue.location) ?? .null
            ]),
        PathCase(
            condition: "home.place GEOWITHIN geocircle([10.#1, 20], 0.000001)",
            fields: [
                "home": .map([
                    "place": .map([
                        "type": .string("Point"),
                        "coordinates": .list([.double(10.71), .double(20)]),
                    ])
                ])
            ]),
        PathCase(
            condition: "spots GEOWITHIN geobox([10.#1, 20], [10.#2, 20.001])",
            fields: [
                "spots": .list([
                    .list([.double(-3), .double(4)]), .list([.double(10.7155), .double(20.0005)]),
                ])
            ]),
        PathCase(
            condition: "maker == obj('Maker', 'm#')",
            fields: ["maker": .map(["recordName": .string("m7")])]),
        PathCase(condition: #"{"name": {"$eq": "n#"}}"#, fields: ["name": .string("n7")]),
        PathCase(
            condition: #"{"$or": [{"name": {"$eq": "n#"}}, {"name": {"$eq": "o#"}}]}"#,
            fields: ["name": .list([.list([.string("o7")])])]),
        PathCase(
            condition: #"{"score": {"$gte": #, "$lte": #}}"#, fields: ["score": .double(7)]),
        PathCase(
            condition: ##"{"seen": {"$eq": "2023-11-14T22:13:20.######Z"}}"##,
            fields: ["seen": .string("2023-11-14T23:13:20.777777+01:00")]),
        PathCase(
            condition: ##"{"name": {"$eq": "8f3c9a10-0000-4000-8000-############"}}"##,
            fields: [
                "name": .uuid(UUIDBytes(high: 0x8F3C_9A10_0000_4000, low: 0x8000_7777_7777_7777))
            ]),
        PathCase(
            condition: ##"{"name": {"$eq": "7#######################"}}"##,
            fields: ["name": .list([.objectID([UInt8](repeating: 0x77, count: 12))])]),
    ]

    private func read(_ text: String) throws -> RecordPredicate {
        text.hasPrefix("{")
            ? try RecordPredicate(where: JSONValue(parsing: text))
            : try RecordPredicate(rql: text)
    }

    @Test(arguments: cases)
    private func `a change looks at few of a thousand conditions`(_ one: PathCase) throws {
        let index = SubscriptionIndex(seed: 7)
        for serial in 0..<1000 {
            let text = one.condition.replacing("#", with: "\(serial)")
            let cost = index.insert(try subscription(serial, try read(text)))
            #expect(!cost.isResidual)
        }
        #expect(index.matches(for: try change(one.fields)) == [7])
        #expect(index.statistics.candidates <= 120)
        for serial in 0..<1000 { index.remove(serial: UInt64(serial)) }
        #expect(index.statistics.keys == 0)
    }

    @Test func `a condition that no value can find is judged for every change`() throws {
        let index = SubscriptionIndex(seed: 7)
        let texts = [
            "NOT name == 'x'", "name != 'x'", "ALL name == 'x'", "NONE name == 'x'",
            "name == other", "name.@count > 1", "score + 1 > 2",
            "NOT home GEOWITHIN geocircle([1, 2], 0.1)",
            "home GEOWITHIN geopolygon({[-120, 0], [0, 0], [120, 0], [0, 89], [-120, 0]})",
            "ALL home GEOWITHIN geocircle([1, 2], 0.1)",
            "home GEOWITHIN geobox([-120, 0], [120, 1])",
            #"{"name": {"$ne": "x"}}"#,
        ]
        for (serial, text) in texts.enumerated() {
            #expect(index.insert(try subscription(serial, try read(text))).isResidual, "\(text)")
        }
        #expect(index.statistics.residuals == texts.count)
    }

    @Test func `a polygon is found from inside, even with crossing edges`() throws {
        let index = SubscriptionIndex(seed: 7)
        var reference = ReferenceIndex()
        let rings = [
            "{[10, 50], [20, 50], [20, 60], [10, 60], [10, 50]}",
            "{[0, 0], [20, 20], [20, 0], [0, 20], [0, 0]}",
            "{[170, -10], [-170, -10], [-170, 10], [170, 10], [170, -10]}",
            "{[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]}",
            "{[0, -80], [-90, -70], [180, -80], [90, -70], [0, -80]}",
            "{[-60, -50], [60, -50], [60, 50], [-60, 50], [-60, -50]}",
            "{[0, 0], [60, 40], [60, -40], [-60, 40], [-60, -40], [0, 0]}",
        ]
        for (serial, ring) in rings.enumerated() {
            let saved = try subscription(
                serial, try read("home GEOWITHIN geopolygon(\(ring))"))
            #expect(!index.insert(saved).isResidual, "\(ring)")
            reference.insert(saved)
        }
        var inside: Set<UInt64> = []
        for latitude in stride(from: -90.0, through: 90, by: 5) {
            for longitude in stride(from: -180.0, through: 180, by: 5) {
                let place = try #require(Location(latitude: latitude, longitude: longitude))
                let posted = try change(["home": .location(place)])
                let expected = reference.matches(for: posted)
                #expect(index.matches(for: posted) == expected, "\(latitude), \(longitude)")
                inside.formUnion(expected)
            }
        }
        #expect(inside.count == rings.count)
    }

    // MARK: Rules

    @Test func `two values of a list may satisfy the two bounds of an interval`() throws {
        let index = SubscriptionIndex(seed: 7)
        for serial in 0..<2000 {
            let text = "score > \(serial) AND score < \(serial + 1)"
            index.insert(try subscription(serial, try read(text)))
        }
        index.insert(try subscription(5000, try read("score > 30 AND score < 10")))
        index.insert(try subscription(5001, try read(#"{"score": {"$gt": 30, "$lt": 10}}"#)))
        let list = FieldValue.list([.double(40.5), .double(3.5)])
        // The greatest element exceeds the lower bounds up to 40, and the least is below the upper
        // bounds from 4 on.
        let found = index.matches(for: try change(["score": list]))
        #expect(found == (3...40).map { UInt64($0) } + [5000, 5001])
        #expect(index.matches(for: try change(["score": .double(40.5)])) == [40])
        let outside = FieldValue.list([.integer(-1), .integer(-2)])
        #expect(index.matches(for: try change(["score": outside])) == [])
        for serial in 0...5001 { index.remove(serial: UInt64(serial)) }
        #expect(index.statistics.keys == 0)
    }

    @Test func `truth values, spellings, data and nil are distinguished`() throws {
        let index = SubscriptionIndex(seed: 7)
        let texts = [
            "a == 1", "a == TRUE", "a == 'é'", "a == 'e\u{301}'", "a == nil", "a != nil", "a > 0",
            "a BEGINSWITH ''", #"{"a": {"$eq": 1}}"#, #"{"a": {"$eq": true}}"#,
            #"{"a": {"$ne": true}}"#,
        ]
        for (serial, text) in texts.enumerated() {
            index.insert(try subscription(serial, try read(text)))
        }
        let answers: [(FieldValue, [UInt64])] = [
            (.integer(1), [0, 5, 6, 8, 10]), (.bool(true), [1, 5, 9]),
            (.string("é"), [2, 5, 7, 10]), (.string("e\u{301}"), [3, 5, 7, 10]),
            (.bytes([0xC3, 0xA9]), [2, 5, 7, 10]), (.null, [4, 10]), (.list([]), [10]),
            (.list([.null, .bool(true)]), [1, 4, 5, 9]), (.map(["b": .null]), [5, 10]),
            (.map(["b": .integer(1)]), [0, 5, 6, 10]),
        ]
        for (value, expected) in answers {
            #expect(index.matches(for: try change(["a": value])) == expected, "\(value)")
        }
    }

    /// A set has another order in each process, and in each copy.
    @Test func `a set is compared with a list in its own order, which varies`() throws {
        let texts = ["a IN {'p', 'q', 'r', 's'}", "a IN {'s', 'r', 'q', 'p'}", "a == 'q'"]
        // The capacity of the set changes the order as well.
        for room in [0, 4, 8, 16, 40, 90, 200, 400, 900, 2000, 5000] {
            let index = SubscriptionIndex(seed: 7)
            var reference = ReferenceIndex()
            for (serial, text) in texts.enumerated() {
                let saved = try subscription(serial, try read(text))
                index.insert(saved)
                reference.insert(saved)
            }
            var values: Set<FieldValue> = []
            values.reserveCapacity(room)
            for text in ["p", "q", "r", "s"] { values.insert(.string(text)) }
            let posted = try change(["a": .set(values)])
            #expect(index.matches(for: posted) == [0, 2])
            #expect(reference.matches(for: posted) == [0, 2])
        }
    }

    /// A condition of sixteen passes or more is evaluated with a step count.
    ///
    /// It keeps its keys, and the counted evaluation decides.
    @Test func `a counted condition keeps its keys`() throws {
        let index = SubscriptionIndex(seed: 7)
        var reference = ReferenceIndex()
        for serial in 0..<200 {
            let members = (0..<12).map { "name == 'n\(serial)-\($0)'" }
            let saved = try subscription(
                serial, try read(members.joined(separator: " OR ")))
            #expect(!index.insert(saved).isResidual)
            reference.insert(saved)
        }
        let short = try change(["name": .string("n7-11")])
        #expect(index.matches(for: short) == [7])
        // Beyond the budget the evaluation gives no answer, whatever the key proves.
        let list = FieldValue.list(
            Array(repeating: .string("x"), count: 60_000) + [.string("n7-11")])
        let long = try change(["name": list])
        #expect(reference.matches(for: long) == [])
        #expect(index.matches(for: long) == [])
        #expect(index.errors == [7: 1])
    }

    @Test func `a change with a long list is looked up once for each distinct value`() throws {
        let index = SubscriptionIndex(seed: 7)
        for serial in 0..<500 {
            let text = serial % 2 == 0 ? "name BEGINSWITH 'ab'" : "name CONTAINS 'needle'"
            index.insert(try subscription(serial, try read(text)))
        }
        let list = FieldValue.list(Array(repeating: .string("ab needle"), count: 5000))
        #expect(index.matches(for: try change(["name": list])).count == 500)
        #expect(index.statistics.candidates <= 20)
    }
}
