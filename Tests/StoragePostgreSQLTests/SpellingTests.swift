import Testing

@testable import StorageSQL

/// The places where the SQL of the two engines differs, one by one.
///
/// The conformance suite runs every statement.
@Suite struct SpellingTests {
    @Test(arguments: [
        ("SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"),
        ("SELECT ?2, ?1", "SELECT $2, $1"),
        ("SELECT '?', \"?\", ?", "SELECT '?', \"?\", $1"),
        ("SELECT 'it''s ?', ?", "SELECT 'it''s ?', $1"),
        (
            "SELECT id FROM user WHERE user.name = ?",
            "SELECT id FROM \"user\" WHERE \"user\".name = $1"
        ),
        ("SELECT username, 'user'", "SELECT username, 'user'"),
        ("SELECT instr(a, ?)", "SELECT strpos(a, $1)"),
        ("SELECT a FROM t INDEXED BY byName WHERE a = 1", "SELECT a FROM t WHERE a = 1"),
        (
            "SELECT min(a), min(a, b), max(a, f(b, c))",
            "SELECT min(a), least(a, b), greatest(a, f(b, c))"
        ),
        ("SELECT min(f(b, c))", "SELECT min(f(b, c))"),
        ("SELECT a FROM t LIMIT -1 OFFSET ?", "SELECT a FROM t LIMIT ALL OFFSET $1"),
        ("SELECT a - 1 FROM t LIMIT ?", "SELECT a - 1 FROM t LIMIT $1"),
        ("SELECT 'unfinished", "SELECT 'unfinished"),
        ("", ""),
    ])
    func `a statement is translated word by word`(sql: String, wanted: String) {
        #expect(PostgresSpelling(sql).text == wanted)
    }
}
