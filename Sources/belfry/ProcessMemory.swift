import Foundation

/// What the process asks of the C library's allocator.
enum ProcessMemory {
    /// Lets all threads share two arenas, before most of them exist.
    ///
    /// By itself glibc gives eight arenas to each processor, and what one thread frees in an arena
    /// is not there for another: with 100,000 devices a third of the resident memory lies idle so.
    /// Small pieces come from a cache of the thread, so that sharing costs next to nothing.
    static func shareArenas() {
        _ = mallopt(M_ARENA_MAX, 2)
    }
}
