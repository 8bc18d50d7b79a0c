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
    /// What to ask whoever left the scheme out, and nothing of any other text.
    var meantURL: String {
        let isPlace = !contains("://") && URL(string: "http://\(self)")?.isCallable == true
        return isPlace ? "; did you mean http://\(self)?" : ""
    }

    /// Whether a header of HTTP can carry it: the client of HTTP names the whole header, with what
    /// is secret, where one cannot.
    var isHeaderValue: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
}
