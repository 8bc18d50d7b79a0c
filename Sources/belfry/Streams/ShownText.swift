/// What clients, sources and systems have written, as a terminal may show it.
///
/// A terminal obeys control characters, also those that JSON leaves as they are (U+009B begins a
/// command as ESC and [ do), and marks of direction turn the text around them.
enum ShownText {
    /// `text` with a dot in the place of each such character.
    static func plain(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isHidden) else { return text }
        var plain = ""
        for scalar in text.unicodeScalars {
            plain.unicodeScalars.append(isHidden(scalar) ? "·" : scalar)
        }
        return plain
    }

    /// The same JSON, with each such character as its escape.
    ///
    /// JSON has nothing but ASCII outside of its texts, so that an escape may stand for whatever
    /// else is found.
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

    /// Ends of lines and tabs are what commands write themselves; joiners make letters and
    /// pictures.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A: false
        case ..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
