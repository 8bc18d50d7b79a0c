import Matching
import PredicateLanguage
import RelayModel
import Testing

/// The keys of predicates: of many saved predicates, a change looks only at those that may match
/// it.
@Suite struct AccessPathTests: ArtworkSuite {
    private struct PathCase: CustomTestStringConvertible {
        /// The predicate; `%@` is the number of the subscription.
        var format: String
        /// The fields of the change that the predicate of subscription 7 matches.
        var fields: RecordFields
        var testDescription: String { format }
    }

    private static let cases: [PathCase] = [
        PathCase(format: "name ==[cd] 'Épicier%@'", fields: ["name": .string("EPICIER7")]),
        PathCase(format: "name IN[c] {'Ab%@', 'Cd%@'}", fields: ["name": .string("cD7")]),
        PathCase(format: "name BEGINSWITH[c] 'Ab%@x'", fields: ["name": .string("aB7Xyz")]),
        PathCase(format: "name LIKE 'ab%@x*'", fields: ["name": .string("ab7x and more")]),
        PathCase(format: "name LIKE[c] 'Ab%@x?*'", fields: ["name": .string("aB7X.")]),
        PathCase(format: "name LIKE '*q%@w*'", fields: ["name": .string("some q7w text")]),
        PathCase(format: "name MATCHES 'ab%@x+'", fields: ["name": .string("ab7xxx")]),
        PathCase(format: "name CONTAINS 'q%@w'", fields: ["name": .string("some q7w text")]),
        PathCase(format: "name ENDSWITH 'q%@w'", fields: ["name": .string("some q7w")]),
        PathCase(format: "'q%@w' IN name", fields: ["name": .string("some q7w text")]),
        PathCase(format: "SELF CONTAINS 'zu%@ku'", fields: ["other": .string("The Zu7ku!")]),
        PathCase(format: "name TOKENMATCHES 'zu%@ku'", fields: ["name": .string("A zu7ku.")]),
        PathCase(
            format: "ANY tags IN {'a%@', 'b%@'}", fields: ["tags": .list([.string("b7")])]),
        PathCase(format: "%@ IN scores", fields: ["scores": .list([.integer(7), .integer(-1)])]),
        PathCase(
            format: "address.city.name == 'c%@'",
            fields: ["address": .map(["city": .map(["name": .string("c7")])])]),
        PathCase(
            format: "address.zip >= %@ AND address.zip <= %@",
            fields: ["address": .map(["zip": .double(7)])]),
        PathCase(format: "price >= %@.25 AND price < %@.5", fields: ["price": .double(7.3)]),
    ]

    @Test(arguments: cases)
    private func `a change looks at few of a thousand predicates`(_ one: PathCase) throws {
        let index = SubscriptionIndex(seed: 7)
        for serial in 0..<1000 {
            let format = one.format.replacing("%@", with: "\(serial)")
            let predicate = try RecordPredicate(format: format)
            let cost = index.insert(try subscription(serial, predicate))
            #expect(!cost.isResidual)
        }
        #expect(index.matches(for: try change(one.fields)) == [7])
        #expect(index.statistics.candidates <= 120)
        for serial in 0..<1000 { index.remove(serial: UInt64(serial)) }
        #expect(index.statistics.keys == 0)
    }

    @Test func `a circle is found from inside, across the date line and at the poles`() throws {
        let index = SubscriptionIndex(seed: 8)
        let centres = [(52.52, 13.405), (0, 180), (89.9, 20), (-90, 0), (10, -179.95)]
        for (serial, (latitude, longitude)) in centres.enumerated() {
            let centre = try #require(Location(latitude: latitude, longitude: longitude))
            let predicate = try RecordPredicate(
                format: "distanceToLocation:fromLocation:(place, %@) < 20000",
                arguments: [.location(centre)])
            #expect(!index.insert(try subscription(serial, predicate)).isResidual)
        }
        let places: [(Double, Double, [UInt64])] = [
            (52.6, 13.5, [0]), (52.9, 13.4, []), (0.05, -179.9, [1]), (89.95, -160, [2]),
            (-89.95, 100, [3]), (10, 179.96, [4]), (10.5, 180, []),
        ]
        for (latitude, longitude, expected) in places {
            let place = try #require(Location(latitude: latitude, longitude: longitude))
            let found = index.matches(for: try change(["place": .location(place)]))
            #expect(found == expected, "\(latitude), \(longitude)")
        }
    }

    @Test func `a text that repeats a word is looked up by it once`() throws {
        let index = SubscriptionIndex(seed: 9)
        for serial in 0..<500 {
            index.insert(
                try subscription(serial, RecordPredicate(format: "name CONTAINS 'needle'")))
        }
        let text = String(repeating: "needle ", count: 2000)
        #expect(index.matches(for: try change(["name": .string(text)])).count == 500)
        #expect(index.statistics.candidates <= 10)
    }

    @Test func `a change is looked up at few interval sizes and prefix lengths`() throws {
        let index = SubscriptionIndex(seed: 10)
        for power in 0..<60 {
            let width = 0.000001 * Double(1 << power)
            let format = "price > 1 AND price < \(1 + width)"
            index.insert(try subscription(power, RecordPredicate(format: format)))
            let text = String(repeating: "a", count: power + 1)
            let prefix = RecordPredicate(
                .comparison(.init(.field("name"), .beginsWith, .constant(.string(text)))))
            index.insert(try subscription(100 + power, prefix))
        }
        let long = String(repeating: "a", count: 100)
        let found = index.matches(
            for: try change(["price": .double(1.5), "name": .string(long)]))
        #expect(found == (19..<60).map { UInt64($0) } + (100..<160).map { UInt64($0) })
    }

    /// Both weighing a predicate before its keys are chosen and writing the keys are bounded.
    ///
    /// If the bound is reached, the predicate must not be left with only a part of its keys.
    @Test func `every one of many alternative conjunctions is found`() throws {
        let index = SubscriptionIndex(seed: 12)
        let pairs = (0..<500).map { "(name == 'n\($0)' AND city == 'c\($0)')" }
        let format = "status != 'old' AND (\(pairs.joined(separator: " OR ")))"
        let cost = index.insert(try subscription(1, format))
        #expect(!cost.isResidual)
        for number in 0..<500 {
            let posted = try change([
                "name": .string("n\(number)"), "city": .string("c\(number)"),
                "status": .string("new"),
            ])
            #expect(index.matches(for: posted) == [1], "\(number)")
        }
    }

    @Test func `nested alternatives are found at any depth`() throws {
        let index = SubscriptionIndex(seed: 13)
        var format = "name == 'n80'"
        for level in (0..<80).reversed() {
            format = "name == 'n\(level)' OR (status != 'old' AND (\(format)))"
        }
        index.insert(try subscription(1, "status != 'gone' AND (\(format))"))
        index.insert(try subscription(2, "price > 1 AND price < 2 AND (\(format))"))
        for level in 0...80 {
            let posted = try change([
                "name": .string("n\(level)"), "status": .string("new"), "price": .double(1.5),
            ])
            #expect(index.matches(for: posted) == [1, 2], "\(level)")
        }
    }

    /// A regular expression matches a text as it is spelled, but keys are made of the composed
    /// form.
    @Test(arguments: [
        ("cafe.*", "cafe\u{301} noir"), ("e.*", "e\u{301}"), ("e\u{301}", "e\u{301}"),
        ("ca+.", "caa\u{301}"), ("cafe?.*", "caf\u{323}"), ("cafe{0,2}.*", "caf\u{323}x"),
        ("ca+f?.*", "ca\u{301}"), ("cafe", "cafe"), ("ca+f", "caaf"), ("cafe\\W", "cafe!"),
    ])
    func `a regular expression matches letters with separate marks`(
        pattern: String, text: String
    ) throws {
        let index = SubscriptionIndex(seed: 11)
        var reference = ReferenceIndex()
        let saved = try subscription(1, "name MATCHES %@", [.string(pattern)])
        index.insert(saved)
        reference.insert(saved)
        let posted = try change(["name": .string(text)])
        #expect(reference.matches(for: posted) == [1])
        #expect(index.matches(for: posted) == [1])
    }
}
