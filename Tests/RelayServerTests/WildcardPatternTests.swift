import Testing

@testable import RelayServer

/// Patterns with `*` for denied record types.
@Suite struct WildcardPatternTests {
    @Test(arguments: [
        ("Secret", "Secret", true), ("Secret", "Secrets", false), ("_*", "_Role", true),
        ("_*", "Role_", false), ("*", "", true), ("*", "Note", true), ("*Log", "AuditLog", true),
        ("*Log", "AuditLogs", false), ("A*B*C", "A--B--C", true), ("A*B*C", "A--C--B", false),
        ("A*A", "A", false), ("A*A", "AA", true), ("A**B", "AB", true), ("", "", true),
        ("A*b*b*C", "AbC", false), ("A*bb*C", "AbbbC", true),
    ])
    func `a star matches anything`(pattern: String, name: String, fits: Bool) {
        #expect(WildcardPattern(pattern).matches(name) == fits)
    }

    /// As a `Character`, the last letter of `Secret` with an accent after it is another letter.
    @Test(arguments: [
        ("Secret*", "Secret\u{301}", true), ("Secret*", "Secret\u{200D}s", true),
        ("*Secret", "My\u{301}Secret", true), ("*e*", "Note\u{301}", true),
        ("_*", "_\u{301}", true), ("\u{E9}*", "e\u{301}", false), ("\u{E9}", "e\u{301}", false),
        ("\u{E9}*", "\u{E9}tat", true),
    ])
    func `names are compared by bytes`(pattern: String, name: String, fits: Bool) {
        #expect(WildcardPattern(pattern).matches(name) == fits)
    }
}
