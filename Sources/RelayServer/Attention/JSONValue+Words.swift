package import RelayModel

extension JSONValue {
    /// What stands at a path of names; `nil` if nothing does.
    package func member(_ path: [String]) -> JSONValue? {
        path.reduce(self) { value, name in
            if case .object(let object)? = value { object[name] } else { nil }
        }
    }

    /// The text at a path, empty if there is none.
    func words(_ path: [String]) -> String {
        if case .string? = member(path) { member(path)?.shown ?? "" } else { "" }
    }

    /// The number at a path, 0 if there is none.
    func count(_ path: [String]) -> Int64 {
        if case .integer(let number)? = member(path) { number } else { 0 }
    }

    /// A text as it is, and the rest as JSON; nothing that a terminal would obey.
    package var shown: String {
        guard case .string(let text) = self else { return self.text }
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) ? "·" : scalar
                }))
    }
}
