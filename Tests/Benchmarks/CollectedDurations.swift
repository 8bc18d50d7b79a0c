import CoreMetrics
import Synchronization

/// Collects one of the relay's timers, and the number of attempts that were not accepted.
///
/// It discards all other metrics.
final class CollectedDurations: MetricsFactory, TimerHandler, Sendable {
    private let timer: String
    private let nanoseconds = Mutex<[Int64]>([])
    private let otherwise = AttemptCounter()

    /// Creates a collector of the timer with this name.
    init(of timer: String) {
        self.timer = timer
    }

    var sorted: [Int64] { nanoseconds.withLock { $0.sorted() } }
    var others: Int { otherwise.count.load(ordering: .relaxed) }

    func forget() {
        nanoseconds.withLock { $0.removeAll(keepingCapacity: true) }
        otherwise.reset()
    }

    func recordNanoseconds(_ duration: Int64) {
        nanoseconds.withLock { $0.append(duration) }
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        label == timer ? self : NOOPMetricsHandler.instance
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let isOther = label == "belfry_attempts_total" && dimensions.first?.1 != "accepted"
        return isOther ? otherwise : NOOPMetricsHandler.instance
    }

    func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }

    func destroyCounter(_ handler: any CounterHandler) {}

    func destroyRecorder(_ handler: any RecorderHandler) {}

    func destroyTimer(_ handler: any TimerHandler) {}
}

private final class AttemptCounter: CounterHandler, Sendable {
    let count = Atomic<Int>(0)

    func increment(by amount: Int64) {
        count.wrappingAdd(Int(amount), ordering: .relaxed)
    }

    func reset() {
        count.store(0, ordering: .relaxed)
    }
}
