/// The address at which other relays reach one: a host and a port.
struct NodeAddress: Sendable, Hashable, CustomStringConvertible {
    /// A name, or an address without brackets.
    let host: String
    let port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Parses `host:port`, with brackets around an IPv6 address; `nil` if it is not valid.
    init?(_ text: String) {
        guard text.utf8.count <= 300, let colon = text.lastIndex(of: ":"),
            let port = Int(text[text.index(after: colon)...]), (1...65_535).contains(port)
        else { return nil }
        guard let host = Self.host(text[..<colon]) else { return nil }
        self.init(host: host, port: port)
    }

    /// Returns a host without its brackets; `nil` if it is not valid.
    static func host(_ text: some StringProtocol) -> String? {
        let isInBrackets = text.hasPrefix("[") && text.hasSuffix("]")
        let plain = isInBrackets ? String(text.dropFirst().dropLast()) : String(text)
        guard !plain.isEmpty, isInBrackets || !plain.contains(":"),
            plain.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/?#@\\[]".utf8.contains($0) })
        else { return nil }
        return plain
    }

    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
