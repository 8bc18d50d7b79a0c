import RelayModel
import Testing

@testable import PredicateLanguage

@Suite struct FormatParsingTests {
    @Test(arguments: [
        ("a==1&&b==2", "a == 1 AND b == 2"),
        ("a == 1 OR b == 2 AND c == 3", "a == 1 OR (b == 2 AND c == 3)"),
        ("NOT a == 1 AND b == 2", "NOT a == 1 AND b == 2"),
        ("not (a = 1 and b <> 2)", "NOT (a == 1 AND b != 2)"),
        ("ANY tags == 'red' AND age > 3", "ANY tags == \"red\" AND age > 3"),
        ("some tags =[dc] 'x'", "ANY tags ==[cd] \"x\""),
        ("(age + 1) * 2 == 62", "(age + 1) * 2 == 62"),
        ("age + 1 * 2 == 62", "age + (1 * 2) == 62"),
        ("((age > 3)) AND (b.c < 2)", "age > 3 AND b.c < 2"),
        ("(SELF.g)[0] == 2", "g[0] == 2"),
        ("($a + 1) ** 3 == 8.0", "($a + 1) ** 3 == 8.0"),
        ("2 ** 3 ** 2 == 512", "2 ** (3 ** 2) == 512"),
        ("-2 ** 2 == 4", "-2 ** 2 == 4"),
        ("-age < 0", "-age < 0"),
        ("a - -5 > .5", "a - -5 > 0.5"),
        (
            "x == 0x1F AND y == 0o17 AND z == 0b101 AND w == 036",
            "x == 31 AND y == 15 AND z == 5 AND w == 36"
        ),
        ("x == -9223372036854775808", "x == -9223372036854775808"),
        ("#in = 1 AND #size > 3", "#in == 1 AND size > 3"),
        ("note == anyone AND in_x == nullable", "note == anyone AND in_x == nullable"),
        ("姓名 == 'x'", "姓名 == \"x\""),
        ("active == YES AND x IN {TRUE, no}", "active == 1 AND x IN {1, 0}"),
        ("a == NULL OR nil = b", "a == nil OR nil == b"),
        (#"s == 'it\'s "q" \u00e9 \x41\101\n'"#, #"s == "it's \"q\" é AA\n""#),
        ("when == CAST(721692800, 'NSDate')", "when == CAST(721692800.000000, \"NSDate\")"),
        ("kids.@max.age == 9 && tags[LAST] = 'G'", "kids.@max.age == 9 AND tags[LAST] == \"G\""),
        ("a[FIRST] == a[SIZE] - 1", "a[FIRST] == a[SIZE] - 1"),
        (
            "SUBQUERY(kids, $k, $k.age > 5).@count == 1",
            "SUBQUERY(kids, $k, $k.age > 5).@count == 1"
        ),
        ("TERNARY(f == YES, 1, 2) == 1", "TERNARY(f == 1, 1, 2) == 1"),
        ("add:to:(a, 2) == from:subtract:(b, 1)", "a + 2 == b - 1"),
        ("sum(a, 2) == count:({1, 2})", "sum:(a, 2) == count:({1, 2})"),
        ("now() > when", "now() > when"),
        (
            "distanceToLocation:fromLocation:(p, q) < 5",
            "distanceToLocation:fromLocation:(p, q) < 5"
        ),
        ("a UNION b == c MINUS d", "a UNION b == c MINUS d"),
        ("a & 1 | b ^ ~c << 2 == 0", "(a & 1) | (b ^ (~c << 2)) == 0"),
        ("ANYKEY == 1", "ANYKEY == 1"), ("@sum.items.price < 3", "SELF.@sum.items.price < 3"),
        ("allTokens TOKENMATCHES[cdl] 'x'", "allTokens TOKENMATCHES[cdl] \"x\""),
        ("'x' TOKENMATCHES[cdl] allTokens", "allTokens TOKENMATCHES[cdl] \"x\""),
        (
            "allTokens TOKENMATCHES tokenize:using:('a bob', 'Cdl')",
            "allTokens TOKENMATCHES[cdl] \"a bob\""
        ),
        (
            "ANY tokenize:using:('After bob', 'Cdl') IN allTokens",
            "allTokens TOKENMATCHES[cdl] \"After bob\""
        ),
        (
            "a == 1 OR ALL tokenize:using:('The Bob, after', 'Cdl') IN allTokens",
            "a == 1 OR (allTokens TOKENMATCHES[cdl] \"bob\" "
                + "AND allTokens TOKENMATCHES[cdl] \"after\")"
        ),
        // The form that Apple's own frameworks write.
        (
            "ALL tokenize('bob after', 'cdl') IN allTokens",
            "allTokens TOKENMATCHES[cdl] \"bob\" AND allTokens TOKENMATCHES[cdl] \"after\""
        ),
        (
            "NONE tokenize:using:('bob', 'cdl') IN allTokens",
            "NOT allTokens TOKENMATCHES[cdl] \"bob\""
        ),
        ("t UTI-EQUALS 'public.text'", "t UTI-EQUALS \"public.text\""),
        ("name CONTAINS[c:realm] ''", "name CONTAINS[c:realm] \"\""),
        ("1 ==[:realm] ANY tags", "1 ==[:realm] ANY tags"),
        ("TRUEPREDICATE", "TRUEPREDICATE"),
    ])
    func `a format has its canonical text, which parses to the same predicate`(
        format: String, canonical: String
    ) throws {
        try check(format, [], canonical)
    }

    @Test(
        arguments: [
            (
                "%K like %@+$b+$c", [.string("single"), .string("b\"")],
                "single LIKE (\"b\\\"\" + $b) + $c"
            ),
            ("%K == %@", [.string("addr.city"), .string("name")], "addr.city == \"name\""),
            ("%K == '%@'", [.string("$x")], "#\"$x\" == \"%@\""),
            ("a BETWEEN {%d, %f}", [.double(1.9), .integer(2)], "a BETWEEN {1, 2.0}"),
            ("a == $1 AND b == $0", [.integer(1), .bool(true)], "a == 1 AND b == 1"),
            ("a IN %@", [.set([.integer(2), .integer(1)])], "a IN CAST({1, 2}, \"NSSet\")"),
            (
                "a == %@", [.map(["k": .list([.null])])],
                "a == CAST({\"k\", {nil}}, \"NSDictionary\")"
            ),
            ("a == %@", [.bytes([104, 105])], "a == CAST(\"aGk=\", \"NSData\")"),
            ("a == %@", [.double(.infinity)], "a == CAST(\"inf\", \"NSNumber\")"),
            (
                "a == %@", [.timestamp(Timestamp(seconds: 0, nanoseconds: 7))],
                "a == CAST(-978307199.999999993, \"NSDate\")"
            ),
            (
                "a == %@", [.timestamp(Timestamp(seconds: .min))],
                "a == CAST(-9223372037833083008.000000, \"NSDate\")"
            ),
            (
                "a == %@", [.objectID([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255])],
                "a == CAST(\"0102030405060708090a0bff\", \"ObjectId\")"
            ),
            (
                "a == %@", [.uuid(UUIDBytes(high: 1, low: 2))],
                "a == CAST(\"00000000-0000-0001-0000-000000000002\", \"NSUUID\")"
            ),
        ] as [(String, [FieldValue], String)])
    func `arguments are folded into the canonical text`(
        format: String, arguments: [FieldValue], canonical: String
    ) throws {
        try check(format, arguments, canonical)
    }

    @Test(arguments: [
        ("", 0, "the text is empty"), ("age", 3, "an expression alone is not a predicate"),
        ("0 || 1", 2, "an expression alone is not a predicate"),
        ("a === 1", 2, "unknown operator"), ("age == 30 xx", 10, "there is more text"),
        ("age ==", 6, "a value is missing"), ("== 3", 0, "a value is missing"),
        ("()", 1, "the parentheses are empty"), ("(a == 1", 7, "the parenthesis is not closed"),
        ("a == 'x", 5, "the text has no closing quotation mark"),
        ("a EQUALS 1", 2, "an expression alone"),
        ("a == %k", 5, "unknown placeholder"), ("a == %@", 5, "there are fewer arguments"),
        ("a == ?", 5, "this character is not part of the language"),
        ("a ==[x] 'b'", 4, "unknown text options"), ("a == 3b", 5, "a number is directly"),
        ("random() < 1", 0, "a saved predicate must not use random numbers"),
        ("FUNCTION(a, 'b') == 1", 0, "FUNCTION calls arbitrary methods"),
        ("FETCH(a, b, NO) == 1", 0, "FETCH reads a database"),
        ("foo(a) == 1", 0, "the function foo is unknown"),
        ("sqrt(a, b) == 1", 0, "the function sqrt takes 1 arguments, not 2"),
        ("a.in == 1 AND in == 2", 14, "in is a reserved word"),
        (#"a MATCHES '\d'"#, 11, "unknown escape"), ("é == €", 6, "this character is not"),
        ("a UTI-CONFORMS-TO 'b'", 2, "UTI-CONFORMS-TO needs a registry"),
        ("9223372036854775808 == a", 0, "the integer does not fit"),
        ("a == CAST('x', 'NSDate')", 10, "a text cannot be cast to NSDate"),
    ])
    func `a malformed text is refused with its offset`(
        format: String, offset: Int, reason: String
    ) {
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(format: format)
        }
        #expect(error?.stage == .parse)
        #expect(error?.offset == offset)
        #expect(error?.reason.hasPrefix(reason) == true, "\(error?.reason ?? "")")
    }

    @Test(arguments: [
        ("a IS NULL", "to find records without a value, write == NULL"),
        ("a IS NOT NULL", "to find records that have a value, write != NULL"),
        ("a is not nil AND b == 1", "to find records that have a value, write != NULL"),
        ("a IS 3", "write == for equality"), ("a IS", "write == for equality"),
        ("a CONTAIN 'x'", "did you mean CONTAINS?"),
        ("a BEGINWITH 'x'", "did you mean BEGINSWITH?"),
        ("a STARTSWITH 'x'", "did you mean BEGINSWITH?"), ("a MATCH 'x'", "did you mean MATCHES?"),
        ("a xyzzy 3", "compare it with something: … == YES"), ("a === 3", "write == for equality"),
        ("a AND b == 1", "compare it with something: … == YES"),
        ("a or b", "compare it with something: … == YES"),
        ("a starts with 'x'", "did you mean BEGINSWITH?"),
        ("a BEGINS WITH 'x'", "did you mean BEGINSWITH?"),
        ("a ends with 'x'", "did you mean ENDSWITH?"),
        ("a ILIKE 'x'", "did you mean LIKE[c], which ignores case?"),
        ("a REGEXP 'x'", "did you mean MATCHES?"), ("a includes 'x'", "did you mean CONTAINS?"),
        ("a ~= 'x'", "to match a pattern, use LIKE or MATCHES"),
        ("a ! 3", "did you mean !=?"), ("a > NOW()", "did you mean now()?"),
        ("len(a) > 3", "did you mean length:?"), ("lower(a) == 'x'", "did you mean lowercase:?"),
        ("a !== 3", "did you mean !=?"), ("a ≠ 3", "did you mean !=?"),
        ("a == “x”", "write a text in straight quotes: \"text\""),
        ("a == «x»", "write a text in straight quotes: \"text\""),
        ("`a` == 3", "write a field name without quotes"),
        ("a == 3;", "a condition does not end with a semicolon"),
        ("a BETWEEN 1 AND 5", "BETWEEN {1, 5}"),
        ("a IN (1, 2)", "write a list in braces: {1, 2}"),
        ("a IN [1, 2]", "write a list in braces: {1, 2}"),
        ("a IN ['x']", "write a list in braces: {1, 2}"),
        ("a == 'it's'", #"inside a text, write a quotation mark as \' or \""#),
        ("a == 'it''s'", #"inside a text, write a quotation mark as \' or \""#),
        (
            "a == 1 ORDER BY b",
            "a condition only selects records; it cannot set their order or number"
        ),
        (
            "a > CAST('2026-01-01', 'NSDate')",
            "write a date as CAST(seconds since 2001, \"NSDate\"), "
                + "or as %@ with an argument {\"$date\": seconds since 1970}"
        ),
        (
            "a == %@",
            "placeholders take their values, in order, from the list of arguments; "
                + "or write the value itself: 3, \"text\", YES"
        ),
    ])
    func `an error has a hint at the probable meaning`(format: String, hint: String) {
        let error = #expect(throws: PredicateError.self) { try RecordPredicate(format: format) }
        #expect(error?.hint == hint)
    }

    @Test func `an error shows the line, a caret and a hint`() throws {
        let format = "é == 1\nAND in == 2"
        let error = #expect(throws: PredicateError.self) { try RecordPredicate(format: format) }
        #expect(
            error?.rendered(in: format) == """
                AND in == 2
                    ^~
                parse error: in is a reserved word
                  found: `in`
                  expected: a field, a constant or %@
                  hint: write a field of that name as #in
                """)
    }

    @Test func `surplus arguments are refused`() {
        let error = #expect(throws: PredicateError.self) {
            try RecordPredicate(format: "a == %@", arguments: [.null, .null])
        }
        #expect(error?.reason == "there are more arguments than placeholders")
        #expect(error?.found == "2 arguments")
        #expect(error?.expected == "1 arguments")
    }

    private func check(
        _ format: String, _ arguments: [FieldValue], _ canonical: String
    ) throws {
        let predicate = try RecordPredicate(format: format, arguments: arguments)
        #expect(predicate.canonicalText == canonical)
        let again = try RecordPredicate(format: canonical)
        #expect(again == predicate)
        #expect(again.canonicalText == canonical)
    }
}
