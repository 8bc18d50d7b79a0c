/// Makes texts from clients, sources and systems safe to show in a terminal.
///
/// A terminal interprets control characters, including those that JSON does not escape (U+009B
/// begins a command, like ESC and [). Directional marks reorder the surrounding text.
enum ShownText {
    /// Returns `text` with a dot in place of each such character.
    static func plain(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isHidden) else { return text }
        var plain = ""
        for scalar in text.unicodeScalars {
            plain.unicodeScalars.append(isHidden(scalar) ? "·" : scalar)
        }
        return plain
    }

    /// Returns equivalent JSON with each such character escaped.
    ///
    /// JSON has only ASCII outside of its strings, so such characters are always inside one, where
    /// an escape is allowed.
    static func json(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isHidden) else { return text }
        var json = ""
        for scalar in text.unicodeScalars {
            guard isHidden(scalar) else {
                json.unicodeScalars.append(scalar)
                continue
            }
            let digits = String(scalar.value, radix: 16)
            json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
        return json
    }

    /// Returns whether a character must not reach a terminal.
    ///
    /// Commands themselves write line feeds and tabs. Joiners are part of letters and emoji.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A: false
        case ..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
