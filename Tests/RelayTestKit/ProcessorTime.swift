import Foundation

extension Duration {
    /// Measures the processor time that `work` takes on this thread.
    ///
    /// Unlike the time of a clock it is not affected by other tests that run meanwhile.
    package static func processorTime(_ work: () throws -> Void) rethrows -> Duration {
        let began = ownProcessorTime
        try work()
        return ownProcessorTime - began
    }

    private static var ownProcessorTime: Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
