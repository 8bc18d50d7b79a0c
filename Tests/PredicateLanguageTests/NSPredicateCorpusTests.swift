import RegularExpressions
import RelayModel
import Testing

@testable import PredicateLanguage

@Suite(.enabled(if: Corpora.folder != nil, Corpora.skipped))
struct NSPredicateCorpusTests {
    /// The expected and the actual result of a line, as one word each.
    private struct Verdict {
        var expected: String
        var actual: String
    }

    @Test func `every line of Apple's scope gets Apple's answer`() throws {
        for (index, line) in try Corpora.lines("nspredicate_cases.jsonl").enumerated()
        where line.text("scope") != "realm" {
            let verdict = try judge(line)
            #expect(
                verdict.actual == verdict.expected,
                "line \(index + 1): \(line.text("predicate"))")
        }
    }

    @Test func `every predicate of the suites is printed and read back`() throws {
        for line in try Corpora.lines("nspredicate_cases.jsonl") {
            guard
                let predicate = try? RecordPredicate(
                    format: line.text("predicate"), arguments: line.arguments())
            else { continue }
            let again = try RecordPredicate(format: predicate.canonicalText)
            #expect(again == predicate, "\(predicate.canonicalText)")
        }
    }

    private func judge(_ line: JSONObject) throws -> Verdict {
        let wanted: String =
            if case .integer(let count)? = line["expect_count"] {
                "\(count)"
            } else if case .bool(let flag)? = line["expect"] {
                "\(flag)"
            } else {
                line.text("expect")
            }
        return Verdict(expected: wanted, actual: try answer(to: line, wanted: wanted))
    }

    private func answer(to line: JSONObject, wanted: String) throws -> String {
        let predicate: RecordPredicate
        do {
            predicate = try RecordPredicate(
                format: line.text("predicate"), arguments: line.arguments())
        } catch is PredicateError {
            return "parse_error"
        }
        if wanted == "valid" { return "valid" }
        var variables: RecordFields = [:]
        if case .object(let object)? = line["vars"] {
            variables = try FieldValue.fields(notation: object)
        }
        if case .array(let records)? = line["records"] {
            var count = 0
            for record in records {
                let value = try FieldValue(notation: record)
                switch try PreparedPredicate(predicate).evaluate(
                    onValue: value, variables: variables)
                {
                case .true: count += 1
                case .false: break
                case .error: return "eval_error"
                }
            }
            return "\(count)"
        }
        let value = try FieldValue(notation: line["record"] ?? [:])
        switch try PreparedPredicate(predicate).evaluate(onValue: value, variables: variables) {
        case .true: return "true"
        case .false: return "false"
        case .error: return "eval_error"
        }
    }
}
