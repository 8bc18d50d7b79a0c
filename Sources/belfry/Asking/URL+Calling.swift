import Foundation

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
