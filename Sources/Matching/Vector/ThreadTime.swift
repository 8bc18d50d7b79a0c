#if canImport(Glibc)
    import Glibc
#endif

/// The time that a thread has worked, which does not go on while others have the processor.
package enum ThreadTime {
    /// The processor time of the calling thread, in seconds.
    package static var seconds: Double { Double(measured) / 1e9 }

    /// The processor time of the calling thread, in nanoseconds.
    ///
    /// Without optimisation it stands still: a step takes twenty times as long there, and what is
    /// decided by it would be another thing.
    @Sendable static func nanoseconds() -> UInt64 {
        #if DEBUG
            return 0
        #else
            return measured
        #endif
    }

    private static var measured: UInt64 {
        var time = timespec()
        guard clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else { return 0 }
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
