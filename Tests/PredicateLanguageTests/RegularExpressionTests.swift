import RegularExpressions
import RelayModel
import RelayTestKit
import Testing

@testable import PredicateLanguage

@Suite struct RegularExpressionTests {
    /// Patterns on which backtracking engines take exponential or high polynomial time, each with
    /// the letter of its attack.
    private static let attacks = [
        "(a+)+", "(a|aa)+", "(a|a?)+", "(.*a){12}", "([a-z]+)*", "(a*)*b", "(.*)(.*)(.*)(.*)x",
        "a?a?a?a?a?a?a?a?a?a?aaaaaaaaaa(a*)*", "((a+)+)+c", "^(a+)+$",
    ]

    @Test(arguments: attacks)
    func `a classic attack takes time in proportion to the text`(pattern: String) throws {
        let expression = try RE2Engine().compile(pattern, ignoringCase: false)
        func time(_ length: Int) -> Duration {
            let text = String(repeating: "a", count: length) + "!"
            return (0..<3).map { _ in
                Duration.processorTime { #expect(expression.matchesWhole(text) == false) }
            }.min() ?? .zero
        }
        _ = time(1000)
        let short = time(50_000)
        let long = time(100_000)
        // Linear time doubles; quadratic time would quadruple; the rest is generosity.
        #expect(long < short * 6 + .milliseconds(50))
    }

    @Test(arguments: [
        ("(a)\\1", "`\\1` is a back-reference"), ("(?=a)b", "`(?=` is not supported"),
        ("(?<!a)b", "look-around and atomic groups are not"), ("(?>a)b", "`(?>` is not supported"),
        ("a++", "the possessive `++`"), ("a)", "is not well-formed"), ("[a", "a set is not closed"),
        ("[a[b]]", "sets within sets"), ("[a&&b]", "`&&` in a set"), ("a\\", "is not well-formed"),
        ("((a{1000}){1000}){1000}", "is"), ("\\u00", "a character code needs 4"),
        ("*a", "is not well-formed"),
    ])
    func `what RE2 cannot do, or reads differently, is refused at save`(
        pattern: String, reason: String
    ) throws {
        let predicate = try RecordPredicate(
            format: "a MATCHES %@", arguments: [.string(pattern)])
        let error = #expect(throws: PredicateError.self) { try predicate.check() }
        #expect(error?.stage == .check)
        #expect(error?.offset == 10)
        #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    }

    @Test(arguments: [
        ("\\d+", "١٢٣", true), ("\\w+", "Ünïted_1", true), ("\\W", "ü", false),
        ("a\\sb", "a\u{2003}b", true), (".", "\u{2028}", false), ("(?s).", "\n", true),
        ("[\\d\\s]+", "1 2", true), ("\\u0041\\U00000042", "AB", true), ("a.c", "a😀c", true),
        ("\\Qa.c\\E", "a.c", true), ("\\Qa.c\\E", "abc", false), ("(?<year>\\d{4})", "1999", true),
        ("a|ab", "ab", true), ("[^]a]", "b", true), ("[[:alpha:]]", "x", true), ("", "", true),
    ])
    func `ICU's meaning is kept`(pattern: String, text: String, matches: Bool) throws {
        #expect(try RE2Engine().compile(pattern, ignoringCase: false).matchesWhole(text) == matches)
    }

    @Test func `without an engine a pattern is refused, and everything else works`() throws {
        let none = NoRegularExpressions()
        let pattern = try RecordPredicate(format: "a MATCHES 'x' OR a LIKE 'y*'")
        let error = #expect(throws: PredicateError.self) { try pattern.check(engine: none) }
        #expect(error?.reason.contains("has no engine of regular expressions") == true)
        let other = try RecordPredicate(format: "a LIKE 'y*' OR a MATCHES b")
        try other.check(engine: none)
        #expect(other.evaluate(on: ["a": .string("yes")], engine: none) == .true)
        guard
            case .error(.badRegularExpression) = other.evaluate(
                on: ["a": .string("x"), "b": .string("x")], engine: none)
        else {
            Issue.record("a pattern in a record must be an error")
            return
        }
    }

    @Test func `a pattern from the record is compiled with the same limits`() throws {
        let predicate = try RecordPredicate(format: "a MATCHES b")
        #expect(predicate.evaluate(on: ["a": .string("x1"), "b": .string("x\\d")]) == .true)
        guard
            case .error(.badRegularExpression) = predicate.evaluate(
                on: ["a": .string("x"), "b": .string("(x)\\1")])
        else {
            Issue.record("a broken pattern in a record must be an error")
            return
        }
    }

    @Test func `a text that is too long for a large pattern is an error, and not a wait`() throws {
        let pattern = String(repeating: ".*x", count: 1300) + "y"
        let predicate = try RecordPredicate(format: "s MATCHES %@", arguments: [.string(pattern)])
        let text = String(repeating: "x", count: 100_000)
        #expect(predicate.evaluate(on: ["s": .string(text)]) == .error(.budgetExceeded))
        #expect(predicate.evaluate(on: ["s": .string("xy")]) == .false)
        let word = try RecordPredicate(format: "s MATCHES '\\\\w+'")
        #expect(word.evaluate(on: ["s": .string(String(text.prefix(10_000)))]) == .true)
    }

    @Test func `LIKE takes no longer for many stars`() throws {
        let pattern = String(repeating: "*x", count: 2000) + "y"
        let predicate = try RecordPredicate(format: "s LIKE[cd] %@", arguments: [.string(pattern)])
        let text = String(repeating: "x", count: 100_000)
        #expect(predicate.evaluate(on: ["s": .string(text)]) == .false)
        #expect(predicate.evaluate(on: ["s": .string(text + "Y")]) == .true)
    }
}
