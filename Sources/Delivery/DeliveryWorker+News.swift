import Logging
import RelayModel
import Synchronization

/// What somebody should hear of after some answers.
struct WorkerNews {
    /// The halts that are new.
    private(set) var begun: [(container: ContainerKey, halt: OutcomeJudge.Halt)] = []
    /// Whether a halt has ended.
    var hasEnded = false
    /// How many halts are in force.
    var haltCount = 0
    /// What the gateway said that needs a person.
    var alarms: [AlarmBook.Alarm] = []

    mutating func add(
        _ halt: OutcomeJudge.Halt, for container: ContainerKey, to halts: inout Halts,
        at now: Timestamp
    ) {
        if halts.add(halt, for: container, at: now) { begun.append((container, halt)) }
        haltCount = halts.count
    }
}

extension DeliveryWorker {
    /// Tells what is new.
    func tell(_ news: WorkerNews) {
        for (container, halt) in news.begun {
            logger.warning(
                "paused deliveries",
                metadata: [
                    "container": "\(container)", "scope": "\(halt.scope)",
                    "reason": "\(halt.reason)",
                ])
        }
        for alarm in news.alarms {
            logger.warning(
                "the gateway refused pushes",
                metadata: [
                    "container": "\(alarm.container)", "status": "\(alarm.answer.status)",
                    "reason": "\(alarm.answer.reason)", "meaning": "\(alarm.explanation)",
                    "count": "\(alarm.count)",
                ])
        }
        if !news.begun.isEmpty || news.hasEnded { meter.show(halts: news.haltCount) }
        if news.hasEnded {
            logger.info("deliveries go on")
            retriesChanged.raise()
        }
    }

    /// What waits, with the gateway's reason, ordered by container.
    package var halts: [HaltInForce] {
        state.withLock { $0.halts.all }
    }
}
