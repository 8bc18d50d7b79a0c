#if canImport(Glibc)
    import Glibc
#endif

/// The time that a thread has worked, which stands still while other threads use the processor.
package enum ThreadTime {
    /// The processor time of the calling thread, in seconds.
    package static var seconds: Double { Double(measured) / 1e9 }

    /// Returns the processor time of the calling thread, in nanoseconds.
    ///
    /// In debug builds it stands still, because a step takes about twenty times as long there,
    /// which would change decisions that depend on the time.
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
