import PostgresFollowing
import PostgresLink
import Testing

/// Quoting of names and texts for SQL.
@Suite struct QuotedNamesTests {
    @Test(arguments: ["orders", "a\"b", "\"\u{301}; DROP TABLE t; --", "\"\u{200D}\"", "'\u{301}"])
    func `a quotation mark does not end a name, whatever follows it`(name: String) {
        let quoted = Array(name.quotedName.utf8)
        #expect(quoted.first == 0x22 && quoted.last == 0x22)
        let within = quoted.dropFirst().dropLast()
        // Each quotation mark of the name is doubled, and nothing else changes.
        #expect(within.filter { $0 == 0x22 }.count == 2 * name.utf8.filter { $0 == 0x22 }.count)
        #expect(within.filter { $0 != 0x22 } == name.utf8.filter { $0 != 0x22 })
        let parts = "s.\(name.quotedName)".tableParts
        #expect(parts.schema == "s")
        #expect(parts.table == name)
    }

    @Test(arguments: ["it's", "x'\u{301}) UNION SELECT 1 --", "'\u{200D}'"])
    func `an apostrophe does not end a text, whatever follows it`(text: String) {
        let within = Array(text.quotedText.utf8.dropFirst().dropLast())
        #expect(within.filter { $0 == 0x27 }.count == 2 * text.utf8.filter { $0 == 0x27 }.count)
        #expect(within.filter { $0 != 0x27 } == text.utf8.filter { $0 != 0x27 })
    }

    @Test(arguments: [
        ("t", "DO $$ BEGIN\n"), ("a$$\u{301}b", "DO 'BEGIN\n"), ("a$belfry$b", "DO 'BEGIN\n"),
    ])
    func `dollar signs in a name do not end a body of SQL`(table: String, beginning: String) {
        let text = OutboxSQL(tables: ["public.\(table)"]).text
        #expect(text.contains(beginning + "    IF NOT EXISTS (SELECT FROM pg_trigger"), "\(text)")
    }
}
