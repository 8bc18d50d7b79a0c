import RelayModel
import RelayTestKit
import Testing

@testable import PredicateLanguage
@testable import RegularExpressions

@Suite struct RegularExpressionTests {
    /// Patterns on which backtracking engines take exponential or high polynomial time, each
    /// attacked with a text of one letter.
    private static let attacks = [
        "(a+)+", "(a|aa)+", "(a|a?)+", "(.*a){12}", "([a-z]+)*", "(a*)*b", "(.*)(.*)(.*)(.*)x",
        "a?a?a?a?a?a?a?a?a?a?aaaaaaaaaa(a*)*", "((a+)+)+c", "^(a+)+$",
    ]

    /// The two patterns are equal as Swift texts, and compiled patterns are cached for the whole
    /// process.
    @Test(arguments: [
        (patterns: ["[\u{F6}]", "[o\u{308}]"], letter: "o"),
        (patterns: ["[u\u{308}]", "[\u{FC}]"], letter: "u"),
    ])
    func `patterns in different spellings are compiled separately`(
        patterns: [String], letter: String
    ) throws {
        for pattern in patterns + patterns {
            let condition = try PreparedPredicate(
                try RecordPredicate(format: "s MATCHES %@", arguments: [.string(pattern)]))
            let hasLetter = pattern.unicodeScalars.count == 4
            #expect(
                condition.evaluate(on: ["s": .string(letter)]) == (hasLetter ? .true : .false))
        }
    }

    @Test(arguments: attacks)
    func `a classic attack takes time proportional to the text`(pattern: String) throws {
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
        // Linear time doubles, and quadratic time would quadruple; the rest of the factor is
        // tolerance.
        #expect(long < short * 6 + .milliseconds(50))
    }

    @Test(arguments: [
        ("(a)\\1", "`\\1` is a back-reference"), ("(?=a)b", "`(?=` is not supported"),
        ("(?<!a)b", "look-around and atomic groups are not"), ("(?>a)b", "`(?>` is not supported"),
        ("a++", "the possessive `++`"),
        ("\\p{L}++", "the possessive `++`"), ("a{2}+", "the possessive `}+`"),
        ("a)", "is not well-formed"), ("[a", "a set is not closed"),
        ("[a[b]]", "sets within sets"), ("[a&&b]", "`&&` in a set"), ("a\\", "is not well-formed"),
        ("((a{1000}){1000}){1000}", "is"), ("\\u00", "a character code needs 4"),
        ("*a", "is not well-formed"),
        ("a{,3}", "`{` begins a number"), ("{name}", "`{` begins a number"),
        ("(a)\\12", "`\\1` is a back-reference"), ("\\C", "the escape `\\C`"),
        ("[[:^alpha:]1]", "write `[^[:alpha:]]`"), ("[[:alpha]]", "sets within sets"),
        ("[[:letters:]]", "the class `[:letters:]`"),
    ])
    func `a pattern that RE2 does not support, or reads differently, is refused at save`(
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
        ("\\p{L}+", "hé", true), ("\\P{L}{2}", "1a", false), ("a\\x{1F600}+", "a😀😀", true),
        ("a|ab", "ab", true), ("[^]a]", "b", true), ("[[:alpha:]]", "x", true), ("", "", true),
    ])
    func `a pattern has the meaning that ICU gives it`(
        pattern: String, text: String, matches: Bool
    ) throws {
        #expect(try RE2Engine().compile(pattern, ignoringCase: false).matchesWhole(text) == matches)
    }

    @Test(arguments: [
        ("[[:alpha:]]+", "Müller", true), ("[[:alpha:]]+", "हि", true),
        ("[[:alpha:]]", "1", false), ("[[:alpha:].]+", "a.b", true),
        ("[[:alnum:].-]+@x", "a.b-ü1@x", true), ("[[:alpha:]\\d]+", "é٣", true),
        ("[:upper:]", "Ⅷ", true), ("[:^digit:]", "٣", false), ("[[:lower:]]", "ª", true),
        ("[^[:space:]]+", "a\u{3000}b", false), ("[[:xdigit:]]", "ｆ", true),
        ("[[:punct:]]", "$", false), ("[[:graph:]]", " ", false), ("[[:print:]]", " ", true),
        ("\\w[[:word:]]", "Ⓐ🅰", true), ("\\s", "\u{85}", true), ("[^\\s]", "\u{0B}", false),
    ])
    func `classes cover all scripts, and may be combined`(
        pattern: String, text: String, matches: Bool
    ) throws {
        #expect(try RE2Engine().compile(pattern, ignoringCase: false).matchesWhole(text) == matches)
    }

    @Test(arguments: [
        ("\\v", "\u{2028}"), ("[\\v]", "\n"), ("\\0101", "A"), ("\\012", "\n"),
        ("\\0777", "?7"), ("a{2,}", "aaa"), ("a{2}", "aa"), ("\\{a\\}", "{a}"), ("[{]", "{"),
        ("\\p{L}{2}", "ab"),
    ])
    func `codes and braces are read as in ICU`(pattern: String, text: String) throws {
        #expect(try RE2Engine().compile(pattern, ignoringCase: false).matchesWhole(text) == true)
    }

    @Test func `without an engine a pattern is refused, and everything else works`() throws {
        let none = NoRegularExpressions()
        let pattern = try RecordPredicate(format: "a MATCHES 'x' OR a LIKE 'y*'")
        let error = #expect(throws: PredicateError.self) { try pattern.check(engine: none) }
        #expect(error?.reason.contains("has no regular expression engine") == true)
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

    @Test func `a text that is too long for a large pattern is an error at once`() throws {
        let pattern = String(repeating: ".*x", count: 1300) + "y"
        let predicate = try RecordPredicate(format: "s MATCHES %@", arguments: [.string(pattern)])
        let text = String(repeating: "x", count: 100_000)
        #expect(predicate.evaluate(on: ["s": .string(text)]) == .error(.budgetExceeded))
        #expect(predicate.evaluate(on: ["s": .string("xy")]) == .false)
        let word = try RecordPredicate(format: "s MATCHES '\\\\w+'")
        #expect(word.evaluate(on: ["s": .string(String(text.prefix(10_000)))]) == .true)
    }

    @Test func `LIKE with many stars is not slower`() throws {
        let pattern = String(repeating: "*x", count: 2000) + "y"
        let predicate = try RecordPredicate(format: "s LIKE[cd] %@", arguments: [.string(pattern)])
        let text = String(repeating: "x", count: 100_000)
        #expect(predicate.evaluate(on: ["s": .string(text)]) == .false)
        #expect(predicate.evaluate(on: ["s": .string(text + "Y")]) == .true)
    }
}

/// The cost of patterns before any record is known.
@Suite struct PatternCostTests {
    /// Returns a pattern of some 27,000 instructions that no other test compiles.
    private static func large(_ number: Int) -> String { "\\w{1,20}cost\(number)" }

    private static func condition(_ patterns: [String]) throws -> RecordPredicate {
        try RecordPredicate(
            format: patterns.map { _ in "a MATCHES %@" }.joined(separator: " OR "),
            arguments: patterns.map { .string($0) })
    }

    @Test func `a condition has at most the maximum number of patterns`() throws {
        try Self.condition((0..<100).map { "few\($0)" }).check()
        let error = #expect(throws: PredicateError.self) {
            try Self.condition((0..<101).map { "few\($0)" }).check()
        }
        #expect(error?.reason.contains("at most 100 patterns") == true)
    }

    @Test func `the size of all patterns of a condition is bounded`() throws {
        try Self.condition([Self.large(0)]).check()
        let error = #expect(throws: PredicateError.self) {
            try Self.condition([Self.large(0), Self.large(1)]).check()
        }
        #expect(error?.reason.contains("too large in total") == true)
    }

    @Test func `compiling is bounded for each caller, and compiled patterns are reused`()
        throws
    {
        let first = try Self.condition([Self.large(2)])
        let other = try Self.condition([Self.large(3)])
        let allowance = PatternAllowance(most: 20_000) { true }
        try PatternAllowance.$current.withValue(allowance) {
            try first.check()
            #expect(allowance.spent > 20_000)
            let error = #expect(throws: PredicateError.self) { try other.check() }
            #expect(error?.reason.contains("one request are too large in total") == true)
            try first.check()
        }
        #expect(!allowance.wasThrottled)
        let spent = PatternAllowance(most: 20_000) { false }
        PatternAllowance.$current.withValue(spent) {
            let error = #expect(throws: PredicateError.self) { try other.check() }
            #expect(error?.reason.contains("try again later") == true)
        }
        #expect(spent.wasThrottled && spent.spent == 0)
    }

    @Test func `a checked condition compiles nothing until a text is matched`() throws {
        let name = CompiledExpressions.Name(pattern: Self.large(4), ignoresCase: false)
        let prepared = try PreparedPredicate(checked: try Self.condition([name.pattern]))
        #expect(CompiledExpressions.shared.find(name) == nil)
        #expect(prepared.evaluate(on: ["a": .string("xcost4")]) == .true)
        #expect(CompiledExpressions.shared.find(name) != nil)
    }

    @Test func `the cache keeps the patterns used last, up to a size`() throws {
        let memory = CompiledExpressions(bytes: 200_000)
        let names = (0..<40).map {
            CompiledExpressions.Name(pattern: "kept\($0)", ignoresCase: false)
        }
        for name in names {
            memory.keep(try RE2Expression(name), as: name)
            // Each use of the first pattern keeps it in the cache.
            #expect(memory.find(names[0]) != nil)
        }
        #expect(names.filter { memory.find($0) != nil }.count < 20)
        #expect(memory.find(names[39]) != nil)
    }
}
