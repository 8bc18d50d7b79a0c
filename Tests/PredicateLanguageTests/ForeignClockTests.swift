import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

/// `now()` in comparisons by rules other than Apple's.
@Suite struct ForeignClockTests {
    @Test(arguments: RecordPredicate.RuleSet.allCases)
    func `now() is the moment of the evaluation by all rules`(
        rules: RecordPredicate.RuleSet
    ) throws {
        let suffix = rules == .apple ? "" : "[:\(rules.rawValue)]"
        let predicate = try RecordPredicate(format: "when <\(suffix) now()")
        let record: RecordFields = ["when": .timestamp(Timestamp(seconds: 100))]
        #expect(predicate.evaluate(on: record, now: Timestamp(seconds: 101)) == .true)
        #expect(predicate.evaluate(on: record, now: Timestamp(seconds: 100)) == .false)
        #expect(predicate.evaluate(on: record) == .error(.noClock))
    }

    @Test func `a schema says where texts are dates`() throws {
        let schema = RecordSchema([
            "name": RecordSchema.Field(.string), "when": RecordSchema.Field(.timestamp),
        ])
        let date = "2018-09-01T18:31:02.631000+08:00"
        let json = try JSONValue(parsing: #"{"name": {"$eq": "\#(date)"}}"#)
        let named = try RecordPredicate.parse(json, dialect: .where, schema: schema)
        let record: RecordFields = ["name": .string(date)]
        #expect(named.evaluate(on: record) == .true)
        #expect(named.canonicalText.contains(date))
        let unknown = try JSONValue(parsing: #"{"other": {"$eq": 1}}"#)
        #expect(throws: PredicateError.self) {
            try RecordPredicate.parse(unknown, dialect: .where, schema: schema)
        }
    }
}
