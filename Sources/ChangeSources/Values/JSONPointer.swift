import RelayModel

/// A place in a JSON document (RFC 6901), such as `/event/data/new`, or the empty text for the
/// whole.
package struct JSONPointer: Sendable, Hashable, CustomStringConvertible {
    /// The unescaped reference tokens.
    let tokens: [String]

    /// Parses a pointer.
    ///
    /// The result is `nil` if the text is too long, if it is not empty and does not begin with a
    /// slash, or if it has an invalid escape after `~`.
    package init?(_ text: String) {
        guard !text.isEmpty else {
            tokens = []
            return
        }
        guard text.utf8.first == UInt8(ascii: "/"), text.utf8.count <= Limits.maximumNameBytes
        else { return nil }
        var tokens: [String] = []
        // By bytes and scalars: as characters, a slash and a combining mark at the start of the
        // name would be one.
        let parts = text.utf8.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for part in parts {
            guard let token = Self.unescaped(Substring(part)) else { return nil }
            tokens.append(token)
        }
        self.tokens = tokens
    }

    /// The pointer as text.
    package var description: String {
        tokens.map { token in
            "/"
                + token.unicodeScalars.reduce(into: "") { text, scalar in
                    switch scalar {
                    case "~": text += "~0"
                    case "/": text += "~1"
                    default: text.unicodeScalars.append(scalar)
                    }
                }
        }.joined()
    }

    /// Returns the value at this place, or `nil` if there is none.
    func value(in document: JSONValue) -> JSONValue? {
        var value = document
        for token in tokens {
            switch value {
            case .object(let object):
                guard let member = object[token] else { return nil }
                value = member
            case .array(let elements):
                guard let index = Int(token), elements.indices.contains(index) else { return nil }
                value = elements[index]
            default:
                return nil
            }
        }
        return value
    }

    private static func unescaped(_ part: Substring) -> String? {
        var token = ""
        var isEscape = false
        for scalar in part.unicodeScalars {
            switch (isEscape, scalar) {
            case (false, "~"): isEscape = true
            case (false, _): token.unicodeScalars.append(scalar)
            case (true, "0"):
                token += "~"
                isEscape = false
            case (true, "1"):
                token += "/"
                isEscape = false
            default: return nil
            }
        }
        return isEscape ? nil : token
    }
}
