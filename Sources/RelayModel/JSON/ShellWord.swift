/// Texts in a line that people paste into a shell.
///
/// Who wrote a text may be somebody else than who pastes it. A shell obeys its marks byte by byte,
/// whatever follows them, while a `Character` takes the combining marks behind it along: so texts
/// are gone through scalar by scalar.
package enum ShellWord {
    /// A text between single quotes, where nothing has a meaning.
    package static func quoted(_ text: String) -> String {
        "'\(text.replacing("'", by: #"'\''"#))'"
    }

    /// A text that stands between double quotes.
    package static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\", "\"", "$", "`": escaped += "\\"
            default: break
            }
            escaped.unicodeScalars.append(scalar)
        }
        return escaped
    }
}

extension String {
    /// This text with other words in the place of each `mark`, whatever follows that.
    package func replacing(_ mark: Unicode.Scalar, by words: String) -> String {
        guard unicodeScalars.contains(mark) else { return self }
        var replaced = ""
        for scalar in unicodeScalars {
            if scalar == mark {
                replaced += words
            } else {
                replaced.unicodeScalars.append(scalar)
            }
        }
        return replaced
    }
}
