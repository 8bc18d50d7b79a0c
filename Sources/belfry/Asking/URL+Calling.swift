import FoundationEssentials

extension URL {
    /// Whether a call can be made there: by HTTP, to a host, at a port that there is.
    ///
    /// The client of HTTP ends the process where a port has more than 16 bits.
    var isCallable: Bool {
        guard let scheme, ["http", "https"].contains(scheme), host()?.isEmpty == false else {
            return false
        }
        return (1...65_535).contains(port ?? 1)
    }
}

extension String {
    /// What to ask whoever left the scheme or its slashes out, and nothing of any other text.
    var meantURL: String {
        guard !contains("://") else { return "" }
        var meant = "http://\(self)"
        // A slash too few is a slip as well.
        if let scheme = ["https", "http"].first(where: { hasPrefix("\($0):") }) {
            meant = "\(scheme)://\(dropFirst(scheme.count + 1).drop { $0 == "/" })"
        }
        return URL(string: meant)?.isCallable == true ? "; did you mean \(meant)?" : ""
    }

    /// Whether a header of HTTP can carry it: the client of HTTP names the whole header, with what
    /// is secret, where one cannot.
    var isHeaderValue: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}
