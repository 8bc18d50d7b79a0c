import Foundation
import PredicateLanguage
import RelayModel
import Testing

@Suite("Foundation's #Predicate, translated")
struct FoundationPredicateTests {
    struct Kid {
        var age: Int
    }

    struct Artwork {
        var artist: String
        var price: Int
        var nick: String?
        var tags: [String]
        var kids: [Kid]
        var kid: Kid
        var made: Date
    }

    private func check(
        _ predicate: Foundation.Predicate<Artwork>, _ format: String, _ arguments: FieldValue...
    ) throws {
        let translated = try RecordPredicate(translating: predicate)
        let parsed = try RecordPredicate(format: format, arguments: arguments)
        #expect(translated.canonicalText == parsed.canonicalText)
        #expect(translated == parsed)
    }

    @Test func `comparisons and connectives keep their places`() throws {
        try check(
            #Predicate { $0.artist == "a" && $0.price < 100 }, "artist == 'a' AND price < 100")
        try check(
            #Predicate { !($0.price >= 3) || $0.price != 5 }, "NOT price >= 3 OR price != 5")
        try check(#Predicate { $0.kid.age + 1 > $0.price * 2 }, "kid.age + 1 > price * 2")
    }

    @Test func `texts, lists and ranges are translated to their operators`() throws {
        try check(#Predicate { $0.artist.contains("x") }, "artist CONTAINS 'x'")
        try check(#Predicate { $0.artist.starts(with: "x") }, "artist BEGINSWITH 'x'")
        try check(#Predicate { $0.tags.contains("red") }, "'red' IN tags")
        let prices = [1, 2]
        try check(#Predicate { prices.contains($0.price) }, "price IN {1, 2}")
        try check(#Predicate { ($0.price...9).contains(3) }, "3 BETWEEN {price, 9}")
        try check(#Predicate { (1..<9).contains($0.price) }, "price >= 1 AND price < 9")
    }

    @Test func `closures become subqueries`() throws {
        try check(
            #Predicate { $0.kids.contains { $0.age > 3 } },
            "SUBQUERY(kids, $x1, $x1.age > 3).@count > 0")
        try check(
            #Predicate { $0.kids.allSatisfy { $0.age > 3 } },
            "SUBQUERY(kids, $x1, NOT $x1.age > 3).@count == 0")
        try check(
            #Predicate { $0.kids.filter { $0.age > 3 }.count == 2 },
            "SUBQUERY(kids, $x1, $x1.age > 3).@count == 2")
        try check(#Predicate { $0.tags.count == 2 }, "tags.@count == 2")
    }

    @Test func `nil and dates are constants`() throws {
        try check(#Predicate { $0.nick == nil }, "nick == nil")
        try check(#Predicate { ($0.nick ?? "x") == "x" }, "TERNARY(nick == nil, 'x', nick) == 'x'")
        let day = Date(timeIntervalSince1970: 1_700_000_000)
        try check(
            #Predicate { $0.made < day }, "made < %@", .timestamp(Timestamp(seconds: 1_700_000_000))
        )
    }

    @Test func `an untranslatable expression is named in the error`() {
        let predicate = #Predicate<Artwork> { ($0.kid as Any) is Int }
        #expect(
            throws: PredicateError(
                .check, "TypeCheck of #Predicate cannot be translated", found: "TypeCheck",
                expected: "comparisons, membership, arithmetic, AND, OR and NOT")
        ) {
            try RecordPredicate(translating: predicate)
        }
    }

    @Test func `a property may stand for a field of another name`() throws {
        let predicate = #Predicate<Artwork> { $0.price > 3 }
        let translated = try RecordPredicate(translating: predicate) { keyPath in
            keyPath == \Artwork.price ? "cost" : nil
        }
        #expect(translated == (try RecordPredicate(format: "cost > 3")))
    }
}
