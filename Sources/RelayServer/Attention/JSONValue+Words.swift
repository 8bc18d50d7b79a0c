package import RelayModel

extension JSONValue {
    /// Returns the value at a path of member names; `nil` if there is none.
    package func member(_ path: [String]) -> JSONValue? {
        path.reduce(self) { value, name in
            if case .object(let object)? = value { object[name] } else { nil }
        }
    }

    /// Returns the text at a path; an empty one if there is none.
    func words(_ path: [String]) -> String {
        if case .string? = member(path) { member(path)?.shown ?? "" } else { "" }
    }

    /// Returns the integer at a path; 0 if there is none.
    func count(_ path: [String]) -> Int64 {
        if case .integer(let number)? = member(path) { number } else { 0 }
    }

    /// A text as it is, other values as JSON; control characters are replaced, so that a terminal
    /// obeys none.
    package var shown: String {
        guard case .string(let text) = self else { return self.text }
        return String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) ? "·" : scalar
                }))
    }
}
