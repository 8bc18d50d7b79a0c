import FoundationEssentials
import Glibc

/// How many files the process may have open, and how many of them listeners may use.
struct OpenFiles: Sendable, Hashable {
    /// The limit of the process.
    let limit: Int

    /// What the relay needs besides connections: the store's readers with a file, a log
    /// and its index each, event loops, standard streams, what libraries open for a moment.
    private static let own = 64
    /// Pools of push connections that may be open at once: one for each credential in use.
    private static let pools = 4

    /// Raises the limit of this process to what the system allows it, and reads it back.
    ///
    /// The soft limit is 1,024 nearly everywhere, because of a system call that nothing here uses.
    static func raised() -> OpenFiles {
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limits = rlimit()
        guard unsafe getrlimit(kind, &limits) == 0 else { return OpenFiles(limit: 1024) }
        if limits.rlim_cur < limits.rlim_max {
            var wished = limits
            wished.rlim_cur = limits.rlim_max
            // Refused where a sandbox forbids it: then the soft limit holds.
            if unsafe setrlimit(kind, &wished) == 0 { limits = wished }
        }
        return OpenFiles(limit: Int(clamping: limits.rlim_cur))
    }

    /// How many of the wished connections the clients' listener may have open, so that the store,
    /// the gateway and the administrative listener always find what they need.
    func connections(wished: Int, operators: Int, gateway: Int) -> Int {
        let reserve = Self.own + operators + gateway * Self.pools
        // A listener that takes nobody serves nobody: a few are taken however low the limit.
        return max(Self.least, min(wished, limit - reserve))
    }

    /// The connections that a listener takes however low the limit is.
    static let least = 8
}
