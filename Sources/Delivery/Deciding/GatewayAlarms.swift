import Gateway
import RelayModel

/// Gateway answers that a person should look at.
///
/// Each is reported at most once a minute for each container and reason, with a count.
struct GatewayAlarms: Sendable {
    /// A report.
    struct Alarm: Sendable, Hashable {
        let container: ContainerKey
        let answer: DeliveryMeter.Answer
        /// What the answer means.
        ///
        /// Never text of the gateway, which may repeat a device token.
        let explanation: String
        /// The number of such answers since the last report.
        let count: Int
    }

    private struct Key: Hashable {
        let container: ContainerKey
        let answer: DeliveryMeter.Answer
    }

    private struct Line {
        var count = 0
        var toldAt: Timestamp?
    }

    /// The time between two reports of the same answer.
    static let silence = Duration.seconds(60)

    private var lines: [Key: Line] = [:]

    /// Moves all times back by `step`, by which the clock was set back.
    mutating func clockWasSetBack(by step: Duration) {
        lines = lines.mapValues { Line(count: $0.count, toldAt: $0.toldAt?.back(by: step)) }
    }

    /// Notes the end of an attempt.
    ///
    /// Returns the alarm to report now, if there is one.
    mutating func note(
        _ outcome: PushOutcome, of delivery: Delivery, at now: Timestamp
    ) -> Alarm? {
        guard case .refused(let refusal) = outcome, refusal.urgency == .alarm else { return nil }
        let answer = DeliveryMeter.Answer(refusal)
        let key = Key(container: delivery.container, answer: answer)
        var line = lines[key] ?? Line()
        line.count += 1
        defer { lines[key] = line }
        if let toldAt = line.toldAt, now < toldAt.advanced(by: Self.silence) { return nil }
        defer { line = Line(count: 0, toldAt: now) }
        return Alarm(
            container: key.container, answer: answer, explanation: refusal.explanation,
            count: line.count)
    }
}
