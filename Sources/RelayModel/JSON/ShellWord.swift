/// Escapes texts for a line that a person pastes into a shell.
///
/// The author of a text may be another person than the one who pastes it. A shell interprets its
/// special characters byte by byte, whatever follows them, but a `Character` includes the combining
/// marks after it. So these functions go through texts scalar by scalar.
package enum ShellWord {
    /// Returns the text in single quotes, between which a shell interprets nothing.
    package static func quoted(_ text: String) -> String {
        "'\(text.replacing("'", by: #"'\''"#))'"
    }

    /// Returns the text escaped for use between double quotes.
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
    /// Returns this text with `words` in the place of each `mark`, even if combining marks follow
    /// it.
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
