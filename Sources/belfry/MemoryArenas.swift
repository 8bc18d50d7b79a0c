import CMalloc
import Foundation

/// How many arenas glibc has for the memory of all threads.
enum MemoryArenas {
    /// As many arenas as there are processors, and two at the least, unless `MALLOC_ARENA_MAX` or
    /// `GLIBC_TUNABLES` say another number.
    ///
    /// By itself glibc makes eight for each processor, and each thread keeps in its own what it
    /// freed: with 100,000 devices that is a third of the resident memory, and it grows for hours.
    static func limit(environment: [String: String], processors: Int) {
        let isChosen =
            environment["MALLOC_ARENA_MAX"] != nil
            || environment["GLIBC_TUNABLES"]?.contains("glibc.malloc.arena_max") == true
        if isChosen { return }
        mallopt(M_ARENA_MAX, Int32(clamping: max(2, processors)))
    }
}
