import Fanout
import PredicateLanguage
import RelayModel
import Testing

@Suite struct SubscriptionPredicateTests {
    private func query(
        _ form: PredicateForm?, _ source: JSONValue, arguments: [JSONValue] = []
    ) throws -> SubscriptionQuery {
        SubscriptionQuery(
            recordType: try #require(RecordType(rawValue: "Artwork")), form: form, source: source,
            arguments: arguments, canonical: "")
    }

    @Test func `no condition means every record`() throws {
        #expect(try query(nil, .null).recordPredicate() == .everyRecord)
    }

    @Test func `every form becomes a predicate`() throws {
        let filter: JSONValue = [
            ["comparator": "EQUALS", "fieldName": "artist", "fieldValue": ["value": "a"]]
        ]
        let expected = try RecordPredicate.parse(#"artist == "a""#, dialect: .nspredicate)
        #expect(try query(.filterBy, filter).recordPredicate() == expected)
        let text = try query(.predicate, "artist == %@", arguments: ["a"])
        #expect(try text.recordPredicate() == expected)
        for (form, source): (PredicateForm, JSONValue) in [
            (.rql, #"artist == "a""#), (.where, ["artist": ["$eq": "a"]]),
        ] {
            #expect(throws: Never.self) { try query(form, source).recordPredicate() }
        }
    }

    @Test func `an argument that is no value is refused with its place`() throws {
        let bad = try query(.predicate, "artist == %@", arguments: [["$nope": 1]])
        let error = #expect(throws: PredicateError.self) { try bad.recordPredicate() }
        #expect(error?.path == "predicateArguments[0]")
        #expect(error?.stage == .parse)
    }
}
