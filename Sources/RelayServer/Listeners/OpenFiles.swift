import FoundationEssentials
import Glibc

/// The number of files that the process may open, and how many of them listeners may use.
struct OpenFiles: Sendable, Hashable {
    /// The limit of the process.
    let limit: Int

    /// The files that the relay needs besides connections: the database file, log and index of each
    /// reader, event loops, standard streams, and what libraries open briefly.
    private static let own = 64
    /// The number of push connection pools that may be open at once: one for each credential in
    /// use.
    private static let pools = 4

    /// Raises the limit of this process to the system's hard limit, and reads it back.
    ///
    /// The soft limit is usually 1,024, because of a system call (`select`) that is not used here.
    static func raised() -> OpenFiles {
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limits = rlimit()
        guard unsafe getrlimit(kind, &limits) == 0 else { return OpenFiles(limit: 1024) }
        if limits.rlim_cur < limits.rlim_max {
            var wished = limits
            wished.rlim_cur = limits.rlim_max
            // A sandbox may forbid it; then the soft limit remains.
            if unsafe setrlimit(kind, &wished) == 0 { limits = wished }
        }
        return OpenFiles(limit: Int(clamping: limits.rlim_cur))
    }

    /// Returns how many of the wished connections the clients' listener may have open.
    ///
    /// The store, the gateway and the administrative listener always keep the files that they need.
    func connections(wished: Int, operators: Int, gateway: Int) -> Int {
        let reserve = Self.own + operators + gateway * Self.pools
        // A few connections are accepted however low the limit is, because a listener without any
        // is useless.
        return max(Self.least, min(wished, limit - reserve))
    }

    /// The number of connections that a listener always accepts.
    static let least = 8
}
