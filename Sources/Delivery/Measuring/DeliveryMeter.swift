import CoreMetrics
import Gateway
import Metrics
import RelayModel
import Storage

/// The metrics of attempts and deliveries, and of the time from a change to its acceptance.
struct DeliveryMeter: Sendable {
    private let attempts: [AttemptEnd: Counter]
    private let endings: [SettledEnding: Counter]
    private let holds: [HoldReason: Counter]
    private let yes: Counter
    private let delay: Metrics.Timer
    private let inFlight: Gauge
    private let position: Gauge
    private let halts: Gauge
    private let factory: any MetricsFactory

    init(_ factory: any MetricsFactory) {
        self.factory = factory
        attempts = Self.counters("belfry_attempts_total", factory)
        endings = Self.counters("belfry_deliveries_settled_total", factory)
        holds = Self.counters("belfry_deliveries_held_total", by: "reason", factory)
        yes = Self.counter(of: Answer(status: 200, reason: ""), factory)
        delay = Metrics.Timer(label: "belfry_change_to_acceptance_seconds", factory: factory)
        inFlight = Gauge(label: "belfry_deliveries_in_flight", factory: factory)
        position = Gauge(label: "belfry_progress_position", factory: factory)
        halts = Gauge(label: "belfry_halts", factory: factory)
    }

    /// An answer of the gateway, with a small set of reasons even if proxies write others.
    struct Answer: Hashable, Sendable {
        let status: Int
        let reason: String
    }

    /// Counts that are collected under the lock, and added to the metrics after it.
    struct Tally: Sendable {
        private(set) var attempts: [AttemptEnd: Int] = [:]
        private(set) var endings: [SettledEnding: Int] = [:]
        /// The deliveries that are held back for their recipients' sake.
        private(set) var holds: [HoldReason: Int] = [:]
        /// The gateway's answers other than "accepted".
        private(set) var answers: [Answer: Int] = [:]
        private(set) var yeses = 0
        /// Those of ``answers`` that a person should look at.
        private(set) var alarms: [Answer: Int] = [:]
        /// The time from the change to the acceptance, of each delivery that was accepted and did
        /// not have to wait.
        private(set) var delays: [Duration] = []

        var isEmpty: Bool { attempts.isEmpty && endings.isEmpty }

        /// Counts the end of an attempt.
        mutating func add(_ outcome: PushOutcome, of delivery: Delivery) {
            attempts[AttemptEnd(outcome), default: 0] += 1
            guard delivery.gateway == .apns else { return }
            switch outcome {
            case .accepted: yeses += 1
            case .refused(let refusal):
                let answer = Answer(refusal)
                answers[answer, default: 0] += 1
                if refusal.urgency == .alarm { alarms[answer, default: 0] += 1 }
            case .unknown, .notSent: break
            }
        }

        /// Counts a settled delivery.
        ///
        /// The time of a delivery that had to wait is not counted, because it says nothing about
        /// the relay and the gateway.
        mutating func add(
            _ resolution: Resolution, of delivery: Delivery, wasToWait: Bool, at now: Timestamp
        ) {
            let ending = resolution.ending
            endings[ending, default: 0] += 1
            if let hold = resolution.hold { holds[hold, default: 0] += 1 }
            if ending == .accepted, !wasToWait {
                delays.append(now.duration(since: delivery.appendedAt))
            }
        }

        mutating func add(_ count: Int, _ ending: SettledEnding) {
            if count > 0 { endings[ending, default: 0] += count }
        }
    }

    /// Adds a tally to the metrics.
    func count(_ tally: Tally) {
        for (end, count) in tally.attempts { attempts[end]?.increment(by: count) }
        for (ending, count) in tally.endings { endings[ending]?.increment(by: count) }
        for (reason, count) in tally.holds { holds[reason]?.increment(by: count) }
        for duration in tally.delays { delay.record(duration: duration) }
        if tally.yeses > 0 { yes.increment(by: tally.yeses) }
        for (answer, count) in tally.answers where answer.status > 0 {
            Self.counter(of: answer, factory).increment(by: count)
        }
        for (answer, count) in tally.alarms {
            Counter(
                label: "belfry_gateway_alarms_total", dimensions: [("reason", answer.reason)],
                factory: factory
            ).increment(by: count)
        }
    }

    /// Shows the progress, and the number of open deliveries.
    func show(_ mark: ProgressMark, inFlight count: Int) {
        position.record(Double(mark.position.rawValue))
        inFlight.record(count)
    }

    /// Shows the number of halts in force.
    func show(halts count: Int) {
        halts.record(count)
    }

    private static func counter(of answer: Answer, _ factory: any MetricsFactory) -> Counter {
        Counter(
            label: "belfry_gateway_answers_total",
            dimensions: [("status", String(answer.status)), ("reason", answer.reason)],
            factory: factory)
    }

    private static func counters<Label: CaseIterable & RawRepresentable & Hashable>(
        _ name: String, by dimension: String = "outcome", _ factory: any MetricsFactory
    ) -> [Label: Counter] where Label.RawValue == String {
        Dictionary(
            uniqueKeysWithValues: Label.allCases.map {
                (
                    $0,
                    Counter(label: name, dimensions: [(dimension, $0.rawValue)], factory: factory)
                )
            })
    }
}

extension DeliveryMeter.Answer {
    init(_ refusal: GatewayRefusal) {
        guard refusal.status > 0 else {
            self.init(status: 0, reason: refusal.reason)
            return
        }
        // A row without a reason is for unknown answers, such as a proxy's page.
        let known = ReasonTable.apns.row(status: refusal.status, reason: refusal.reason).reason
        self.init(status: refusal.status, reason: known.isEmpty ? "other" : known)
    }
}
