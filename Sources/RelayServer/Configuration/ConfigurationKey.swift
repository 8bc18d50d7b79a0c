import RelayModel

/// One setting: its name, its allowed values, its place in the configuration, and its default.
package struct ConfigurationKey: Sendable {
    /// The kind of values that a setting allows.
    package enum Kind: Sendable, Hashable {
        /// Any text that is not empty.
        case text
        /// A secret of at least this many bytes, so that it cannot be guessed; an HTTP header can
        /// carry it.
        case longSecret(Int)
        /// A whole number in this range.
        case integer(ClosedRange<Int>)
        /// One of these words.
        case choice([String])
        /// An absolute URL with one of these schemes and no path beyond a slash.
        case url(schemes: [String])
        /// An absolute URL of a page with one of these schemes; it may have a path and a query.
        case page(schemes: [String])
        /// An absolute URL of a proxy with one of these schemes and no path beyond a slash; a user
        /// and a password may stand before the host.
        case proxy(schemes: [String])
        /// A list of texts; in one text, commas separate them.
        case list
    }

    /// The name: `http.port` in the file is the member `port` of the object `http`.
    package let name: String
    /// The kind of values that the setting allows.
    package let kind: Kind
    /// The default; `nil` means that there is none.
    package let defaultText: String?
    /// Whether the value is a secret that must never be shown.
    package let isSecret: Bool
    /// The purpose of the setting, as a sentence.
    package let summary: String

    /// Sets an allowed text in the configuration, and returns problems that remain.
    let apply: Application

    /// A function that sets a text in the configuration and returns what is wrong with it.
    typealias Application =
        @Sendable (_ text: String, _ configuration: inout RelayConfiguration) -> [String]

    init(
        _ name: String, _ kind: Kind, default defaultText: String? = nil,
        secrecy: Secrecy = .open, _ summary: String,
        apply: @escaping Application = { _, _ in [] }
    ) {
        self.name = name
        self.kind = kind
        self.defaultText = defaultText
        isSecret = secrecy == .secret
        self.summary = summary
        self.apply = apply
    }

    /// Whether a value may be shown.
    enum Secrecy {
        case open, secret
    }

    /// The environment variable, for example `BELFRY_HTTP_PORT`.
    package var variable: String {
        "BELFRY_" + words(separator: "_").uppercased()
    }

    /// The flag, for example `--http-port`.
    package var flag: String {
        "--" + words(separator: "-").lowercased()
    }

    /// The allowed values, as the end of a sentence with "must be".
    package var rule: String {
        switch kind {
        case .text: "a text that is not empty"
        case .longSecret(let bytes):
            "a text of \(bytes) bytes or more on one line, without spaces around it"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .choice(let words): "one of \(words.joined(separator: ", "))"
        case .url(let schemes), .proxy(let schemes):
            "a URL that begins with "
                + schemes.map { "\($0)://" }.joined(separator: " or ") + ", without a path"
        case .page(let schemes):
            "a URL that begins with " + schemes.map { "\($0)://" }.joined(separator: " or ")
        case .list: "a list of texts, divided by commas"
        }
    }

    /// Returns whether `text` is an allowed value.
    func allows(_ text: String) -> Bool {
        switch kind {
        case .text: !text.isEmpty
        // A list of commas only, which may come from unset variables, names nothing. It does not
        // even mean an empty list.
        case .list: Self.elements(text).contains { !$0.isEmpty }
        case .longSecret(let bytes): text.utf8.count >= bytes && Self.isSendable(text)
        case .integer(let range): Int(text).map(range.contains) ?? false
        case .choice(let words): words.contains(text)
        case .url(let schemes): Self.isURL(text, schemes: schemes)
        case .page(let schemes): Self.isPage(text, schemes: schemes)
        case .proxy(let schemes): Self.isProxy(text, schemes: schemes)
        }
    }

    /// Returns the name with `separator` in place of each dot, and before each capital that follows
    /// a small letter.
    private func words(separator: String) -> String {
        var text = ""
        var isAfterSmall = false
        for character in name {
            if character == "." {
                text += separator
                isAfterSmall = false
                continue
            }
            if character.isUppercase, isAfterSmall { text += separator }
            text.append(character)
            isAfterSmall = character.isLowercase
        }
        return text
    }

    /// Returns whether an HTTP header carries the text unchanged.
    ///
    /// A line break (for example from a file with CRLF) is not allowed, and spaces at the ends
    /// would be cut off.
    private static func isSendable(_ text: String) -> Bool {
        text.first != " " && text.last != " "
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Returns whether the port in `HOST:PORT`, if there is one, has at most 16 bits.
    ///
    /// HTTP clients crash the process for a larger port.
    private static func hasPort(_ host: Substring) -> Bool {
        guard let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") else {
            return true
        }
        let port = host[host.index(after: colon)...]
        return port.isEmpty || UInt16(port) != nil
    }

    /// Returns whether a text is the URL of a page; the part after the host has no spaces or line
    /// breaks.
    private static func isPage(_ text: String, schemes: [String]) -> Bool {
        guard let scheme = schemes.first(where: { text.hasPrefix("\($0)://") }) else {
            return false
        }
        let rest = text.dropFirst(scheme.count + 3)
        let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
        return isURL("\(scheme)://\(rest[..<end])", schemes: schemes)
            && rest[end...].utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    /// Returns whether a text is the URL of a proxy; a sign in its user or password that would end
    /// them is percent-encoded.
    private static func isProxy(_ text: String, schemes: [String]) -> Bool {
        guard let scheme = schemes.first(where: { text.hasPrefix("\($0)://") }) else {
            return false
        }
        let rest = text.dropFirst(scheme.count + 3)
        guard let end = rest.firstIndex(of: "@") else { return isURL(text, schemes: schemes) }
        return rest[..<end].utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && !"/?#\\".utf8.contains($0)
        } && isURL("\(scheme)://\(rest[rest.index(after: end)...])", schemes: schemes)
    }

    private static func isURL(_ text: String, schemes: [String]) -> Bool {
        guard let scheme = schemes.first(where: { text.hasPrefix("\($0)://") }) else {
            return false
        }
        let rest = text.dropFirst(scheme.count + 3)
        let host = rest.hasSuffix("/") ? rest.dropLast() : rest
        return !host.isEmpty && hasPort(host)
            && host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@\\".utf8.contains($0) }
    }
}
