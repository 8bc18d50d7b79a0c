import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

@Suite struct PredicateLimitTests {
    private static let depth = Limits.maximumPredicateDepth

    @Test(arguments: ["NOT ", "(", "-", "~", "{", "a[", "abs(", "1 + (", "2 ** ", "$x := "])
    func `hostile nesting is refused, however long`(piece: String) {
        for count in [300, 10_000, 60_000] {
            let error = #expect(throws: PredicateError.self) {
                try RecordPredicate(format: String(repeating: piece, count: count))
            }
            let isExpected =
                error?.reason.hasPrefix("nested deeper") == true
                || error?.reason.hasPrefix("the text is longer") == true
            #expect(isExpected, "\(error?.reason ?? "")")
        }
    }

    @Test func `escapes cannot make endless runs of marks`() throws {
        let run = String(repeating: "\\u0323\\u0301", count: 33)
        // Names of types and fields are compared before a condition is checked.
        for text in [
            "t == 'a\(run)'", "t IN {'b', 'a\(run)'}", "t BEGINSWITH[cd] '\(run)'",
            "CAST(t, 'a\(run)') == 1", "#'a\(run)' == 1",
        ] {
            let error = #expect(throws: PredicateError.self) {
                try RecordPredicate(format: text)
            }
            #expect(error?.reason == "a text has too many combining marks in a row")
        }
        try RecordPredicate(format: "t == 'a\\u0323\\u0301'").check()
    }

    @Test func `parentheses nest up to the limit`() throws {
        func text(_ count: Int) -> String {
            String(repeating: "(", count: count) + "a == 1" + String(repeating: ")", count: count)
        }
        #expect(try RecordPredicate(format: text(Self.depth - 1)).canonicalText == "a == 1")
        #expect(try RecordPredicate(format: text(Self.depth)).canonicalText == "a == 1")
        #expect(throws: PredicateError.self) { try RecordPredicate(format: text(Self.depth + 1)) }
    }

    @Test func `a predicate as deep as allowed is evaluated and printed`() throws {
        let text = String(repeating: "NOT ", count: Self.depth - 2) + "a == 1"
        let predicate = try RecordPredicate(format: text)
        #expect(predicate.canonicalText == text)
        #expect(predicate.evaluate(on: ["a": .integer(1)]) == .true)
        #expect(throws: PredicateError.self) {
            try RecordPredicate(format: "NOT NOT NOT " + text)
        }
    }

    @Test(arguments: [
        FieldValue.list([]), .list([.list([])]), .list([.map(["c": .list([])])]),
        .map(["c": .list([])]),
    ])
    func `a path may pass as many lists as its text has room for`(value: FieldValue) throws {
        for step in ["[*].c", ".c[*]", ".@unionOfArrays.c", ".@distinctUnionOfObjects.c"] {
            let count = (Limits.maximumPredicateBytes - 20) / step.utf8.count
            let text = "b.c" + String(repeating: step, count: count) + " == 1"
            let predicate = try RecordPredicate(format: text)
            #expect(predicate.evaluate(on: ["b": value]) != .true)
        }
    }

    @Test func `a chain of one operator is flat for AND and bounded for sums`() throws {
        let terms = (0..<5000).map { "a != \($0)" }.joined(separator: " AND ")
        let flat = try RecordPredicate(format: terms)
        #expect(flat.evaluate(on: ["a": .integer(-1)]) == .true)
        let sum = Array(repeating: "a", count: Self.depth - 1).joined(separator: " + ")
        #expect(throws: Never.self) { try RecordPredicate(format: "\(sum) == 1") }
        #expect(throws: PredicateError.self) {
            try RecordPredicate(format: "\(sum) + a + a + a == 1")
        }
    }

    @Test func `a text has at most the maximum length`() throws {
        func text(_ length: Int) -> String {
            "a == '" + String(repeating: "x", count: length - 7) + "'"
        }
        let limit = Limits.maximumPredicateBytes
        #expect(throws: Never.self) { try RecordPredicate(format: text(limit - 1)) }
        #expect(throws: Never.self) { try RecordPredicate(format: text(limit)) }
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(format: text(limit + 1))
        }
        #expect(error?.offset == limit)
    }

    @Test func `a list has at most the maximum number of elements`() throws {
        func text(_ count: Int) -> String {
            "a IN {" + Array(repeating: "1", count: count).joined(separator: ",") + "}"
        }
        let limit = Limits.maximumPredicateListElements
        #expect(throws: Never.self) { try RecordPredicate(format: text(limit - 1)).check() }
        #expect(throws: Never.self) { try RecordPredicate(format: text(limit)).check() }
        #expect(throws: PredicateError.self) { try RecordPredicate(format: text(limit + 1)) }
        #expect(throws: PredicateError.self) {
            try RecordPredicate(
                format: "a IN %@", arguments: [.list(Array(repeating: .null, count: limit + 1))])
        }
    }

    // A condition of 256 KiB may name an argument of one megabyte twenty thousand times. Printing
    // it before its length was checked took some twenty gigabytes.
    @Test func `an argument counts each time that it is named`() throws {
        let text = FieldValue.string(String(repeating: "x", count: 200_000))
        let list = FieldValue.list(Array(repeating: .integer(1), count: 10_000))
        for (argument, once, count) in [(text, "t == $0", 3), (list, "t IN $0", 20)] {
            let often = Array(repeating: once, count: count).joined(separator: " OR ")
            #expect(throws: Never.self) {
                try RecordPredicate(format: once, arguments: [argument])
            }
            #expect(throws: Never.self) { try RealmQuery(parsing: once, arguments: [argument]) }
            let format = #expect(throws: PredicateError.self) {
                try RecordPredicate(format: often, arguments: [argument])
            }
            let realm = #expect(throws: PredicateError.self) {
                try RealmQuery(parsing: often, arguments: [argument])
            }
            for error in [format, realm] {
                #expect(error?.reason.hasPrefix("the canonical text is longer") == true)
            }
        }
        let paths = Array(repeating: "$K0 == 1", count: 3).joined(separator: " OR ")
        #expect(throws: PredicateError.self) {
            try RealmQuery(parsing: paths, arguments: [text])
        }
        let few = Array(repeating: "t == $0", count: 1000).joined(separator: " OR ")
        #expect(throws: Never.self) {
            try RealmQuery(parsing: few, arguments: [.string("a text of a usual length")])
        }
    }

    @Test func `a search for all of some words is bounded by the text's length`() throws {
        func search(_ count: Int) throws -> RecordPredicate {
            let words = String(repeating: "b ", count: count)
            return try RecordPredicate(
                format: "ALL tokenize:using:(%@, 'Cdl') IN allTokens", arguments: [.string(words)])
        }
        #expect(throws: Never.self) { try search(1000).check() }
        let error = #expect(throws: PredicateError.self) { try search(20_000) }
        #expect(error?.reason.hasPrefix("the canonical text is longer") == true)
    }

    @Test(arguments: ["MATCHES", "LIKE"])
    func `a pattern has at most the maximum length`(word: String) throws {
        func predicate(_ length: Int) throws -> RecordPredicate {
            try RecordPredicate(
                format: "a \(word) %@", arguments: [.string(String(repeating: "x", count: length))])
        }
        let limit = Limits.maximumRegularExpressionBytes
        #expect(throws: Never.self) { try predicate(limit - 1).check() }
        #expect(throws: Never.self) { try predicate(limit).check() }
        #expect(throws: PredicateError.self) { try predicate(limit + 1).check() }
    }
}
