import RelayModel

/// One setting: its name, what it may be, where its value goes, and what it is if nobody says.
package struct ConfigurationKey: Sendable {
    /// What a value may be.
    package enum Kind: Sendable, Hashable {
        /// Any text that is not empty.
        case text
        /// A secret that cannot be guessed by trying, and that a header can carry: a text of at
        /// least this many bytes.
        case longSecret(Int)
        /// A whole number in this range.
        case integer(ClosedRange<Int>)
        /// One of these words.
        case choice([String])
        /// An absolute URL with one of these schemes and no path beyond a slash.
        case url(schemes: [String])
        /// An absolute URL with one of these schemes, of a page: it may have a path and a query.
        case page(schemes: [String])
        /// A list of texts; commas divide it where it is one text.
        case list
    }

    /// The name: `http.port` in the file is the member `port` of the object `http`.
    package let name: String
    /// What a value may be.
    package let kind: Kind
    /// The value if nobody says; `nil` means none.
    package let defaultText: String?
    /// Whether it must never be shown.
    package let isSecret: Bool
    /// What it is for, as a sentence.
    package let summary: String

    /// Puts a text that is allowed where it belongs, and says what is wrong with it all the same.
    let apply: Application

    /// How a text gets into the configuration.
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

    /// The variable of the environment: `BELFRY_HTTP_PORT`.
    package var variable: String {
        "BELFRY_" + words(separator: "_").uppercased()
    }

    /// The flag: `--http-port`.
    package var flag: String {
        "--" + words(separator: "-").lowercased()
    }

    /// What is allowed, to be read after "must be".
    package var rule: String {
        switch kind {
        case .text: "a text that is not empty"
        case .longSecret(let bytes):
            "a text of \(bytes) bytes or more on one line, without spaces around it"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .choice(let words): "one of \(words.joined(separator: ", "))"
        case .url(let schemes):
            "a URL that begins with "
                + schemes.map { "\($0)://" }.joined(separator: " or ") + ", without a path"
        case .page(let schemes):
            "a URL that begins with " + schemes.map { "\($0)://" }.joined(separator: " or ")
        case .list: "a list of texts, divided by commas"
        }
    }

    /// Whether `text` is allowed.
    func allows(_ text: String) -> Bool {
        switch kind {
        case .text: !text.isEmpty
        // Commas alone, as of variables that are not set, name nothing: not even that nothing is
        // meant.
        case .list: Self.elements(text).contains { !$0.isEmpty }
        case .longSecret(let bytes): text.utf8.count >= bytes && Self.isSendable(text)
        case .integer(let range): Int(text).map(range.contains) ?? false
        case .choice(let words): words.contains(text)
        case .url(let schemes): Self.isURL(text, schemes: schemes)
        case .page(let schemes): Self.isPage(text, schemes: schemes)
        }
    }

    /// The name with `separator` for the dots and before capitals that follow small letters.
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

    /// Whether a header of HTTP carries the text as it is: no line break, as of a file that was
    /// written elsewhere, and no space at an end, which is cut off.
    private static func isSendable(_ text: String) -> Bool {
        text.first != " " && text.last != " "
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Whether the port of `HOST:PORT` is one, if there is any: clients of HTTP end the process
    /// where one has more than 16 bits.
    private static func hasPort(_ host: Substring) -> Bool {
        guard let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") else {
            return true
        }
        let port = host[host.index(after: colon)...]
        return port.isEmpty || UInt16(port) != nil
    }

    /// Whether a text is a URL of a page: what stands behind its host has no spaces or breaks.
    private static func isPage(_ text: String, schemes: [String]) -> Bool {
        guard let scheme = schemes.first(where: { text.hasPrefix("\($0)://") }) else {
            return false
        }
        let rest = text.dropFirst(scheme.count + 3)
        let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
        return isURL("\(scheme)://\(rest[..<end])", schemes: schemes)
            && rest[end...].utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
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
