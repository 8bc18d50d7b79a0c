import Foundation

extension Duration {
    /// The processor time that `work` takes on this thread.
    ///
    /// Unlike a clock it does not count what other tests do meanwhile.
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
