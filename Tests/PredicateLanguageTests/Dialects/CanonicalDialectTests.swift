import PredicateLanguage
import RelayModel
import Testing

@Suite("What other dialects become in canonical text")
struct CanonicalDialectTests {
    @Test(.enabled(if: DialectCorpora.folder != nil, DialectCorpora.hint))
    func `every Realm query is read again from its canonical text`() throws {
        for test in try DialectCorpora.cases("rql_valid.jsonl") {
            guard let query = try? RealmQuery(parsing: test.text("query")) else { continue }
            check(query.predicate)
        }
    }

    private func check(_ predicate: RecordPredicate) {
        let text = predicate.canonicalText
        do {
            let again = try RecordPredicate(format: text)
            // NaN is not equal to itself.
            #expect(again == predicate || text.contains("nan"), "\(text)")
            #expect(again.canonicalText == text)
        } catch {
            Issue.record("\(text): \(error)")
        }
    }
}
