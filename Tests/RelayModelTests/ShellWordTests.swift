import RelayModel
import Testing

/// Quoting of texts in command lines that people paste into a shell.
@Suite struct ShellWordTests {
    @Test(arguments: [
        ("", "''"), ("a b", "'a b'"), ("it's", #"'it'\''s'"#),
        ("'\u{301};id;'\u{301}", #"''\''"# + "\u{301};id;" + #"'\''"# + "\u{301}'"),
    ])
    func `a text in single quotes cannot end the quotes`(text: String, quoted: String) {
        #expect(Array(ShellWord.quoted(text).utf8) == Array(quoted.utf8))
    }

    @Test(arguments: [
        ("sha256=", "sha256="), (#"\"$`"#, #"\\\"\$\`"#),
        ("\"\u{301}`\u{301}", "\\\"\u{301}\\`\u{301}"), ("$\u{200D}", "\\$\u{200D}"),
    ])
    func `a text in double quotes cannot end the quotes`(text: String, escaped: String) {
        #expect(Array(ShellWord.escaped(text).utf8) == Array(escaped.utf8))
    }
}
