import FoundationEssentials
import Glibc

/// Wakes a thread that waits for work from another thread.
///
/// It is not a semaphore, because the timed wait of glibc's semaphore, which Dispatch uses, ends at
/// a time of day: a wait of two milliseconds takes an hour if the clock is set back by an hour.
/// `poll` measures elapsed time.
package final class WakeUp: Sendable {
    private let reading: Int32
    private let writing: Int32

    package init() {
        var ends: [Int32] = [-1, -1]
        // Without two descriptors for its writer, no store can be opened and no relay can start.
        precondition(
            unsafe pipe(&ends) == 0, "no pipe for waking a thread can be made: errno \(errno)")
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// Ends one wait: the current one, or the next if no thread waits.
    package func signal() {
        var byte: UInt8 = 1
        while unsafe write(writing, &byte, 1) < 0, errno == EINTR {}
    }

    /// Blocks until a signal comes.
    package func wait() {
        var byte: UInt8 = 0
        while unsafe read(reading, &byte, 1) < 0, errno == EINTR {}
    }

    /// Blocks until a signal comes, but at most for `bound`, and returns whether one came.
    package func wait(atMost bound: Duration) -> Bool {
        let end = ContinuousClock.now.advanced(by: bound)
        while true {
            let left = max(.zero, ContinuousClock.now.duration(to: end))
            let milliseconds = (left / .milliseconds(1)).rounded(.up)
            var watched = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
            let count = unsafe poll(&watched, 1, Int32(min(milliseconds, 1e9)))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            wait()
            return true
        }
    }
}
