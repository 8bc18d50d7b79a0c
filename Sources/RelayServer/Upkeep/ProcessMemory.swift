import CMalloc
import FoundationEssentials
import Glibc

/// The memory of this process, as the kernel and glibc see it.
package enum ProcessMemory {
    /// The resident memory in bytes (Linux: the second number of `/proc/self/statm`).
    package static var residentBytes: Int {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
            return 0
        }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Limits glibc's memory arenas to the number of processors, and to at least two, unless
    /// `MALLOC_ARENA_MAX` or `GLIBC_TUNABLES` sets another number.
    ///
    /// By default glibc creates eight for each processor, and each thread keeps its freed memory in
    /// its own arena. With 100,000 devices that is a third of the resident memory, and it grows for
    /// hours.
    package static func limitArenas(environment: [String: String], processors: Int) {
        let isChosen =
            environment["MALLOC_ARENA_MAX"] != nil
            || environment["GLIBC_TUNABLES"]?.contains("glibc.malloc.arena_max") == true
        if isChosen { return }
        mallopt(M_ARENA_MAX, Int32(clamping: max(2, processors)))
    }
}
