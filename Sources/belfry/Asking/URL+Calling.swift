import FoundationEssentials

extension URL {
    /// Whether the URL can be called: HTTP or HTTPS, with a host and a valid port.
    ///
    /// The HTTP client crashes if a port has more than 16 bits.
    var isCallable: Bool {
        guard let scheme, ["http", "https"].contains(scheme), host()?.isEmpty == false else {
            return false
        }
        return (1...65_535).contains(port ?? 1)
    }
}

extension String {
    /// A question for a text that lacks the scheme or its slashes; empty for any other text.
    var meantURL: String {
        guard !contains("://") else { return "" }
        var meant = "http://\(self)"
        // One slash too few is a common slip as well.
        if let scheme = ["https", "http"].first(where: { hasPrefix("\($0):") }) {
            meant = "\(scheme)://\(dropFirst(scheme.count + 1).drop { $0 == "/" })"
        }
        return URL(string: meant)?.isCallable == true ? "; did you mean \(meant)?" : ""
    }

    /// Whether an HTTP header can carry the text.
    ///
    /// If one cannot, the HTTP client's error contains the whole header, including a secret.
    var isHeaderValue: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}
