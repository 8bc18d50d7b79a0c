import PredicateLanguage
import RegularExpressions
import RelayModel
import Testing

@Suite(
    "Parse's published queries, as NSPredicate",
    .enabled(if: DialectCorpora.folder != nil, DialectCorpora.hint))
struct ParseCorpusTests {
    @Test func `an equivalent predicate has the published answer`() throws {
        var count = 0
        for test in try DialectCorpora.cases("parse_livequery_cases.jsonl")
        where test.object["nspredicate"] != nil {
            let predicate = try RecordPredicate(
                format: test.text("nspredicate"), arguments: try test.arguments)
            guard case .map(let fields) = try FieldValue(notation: test.object["nsrecord"] ?? [:])
            else { continue }
            let expected: PredicateOutcome = test.object["expect"] == true ? .true : .false
            #expect(predicate.evaluate(on: fields) == expected, "\(test.testDescription)")
            count += 1
        }
        #expect(count == 46)
    }
}
