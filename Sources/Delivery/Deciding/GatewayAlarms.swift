import Gateway
import RelayModel

/// What the gateway answered that somebody should look at: told at most once a minute for each
/// container and reason, with a count.
struct GatewayAlarms: Sendable {
    /// What is told.
    struct Alarm: Sendable, Hashable {
        let container: ContainerKey
        let answer: DeliveryMeter.Answer
        /// What it means; never text of the gateway, which may repeat a device token.
        let explanation: String
        /// How many there were since the last time it was told.
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

    /// How long nothing more is said of the same.
    static let silence = Duration.seconds(60)

    private var lines: [Key: Line] = [:]

    /// The clock goes `step` later than it did.
    mutating func clockWasSetBack(by step: Duration) {
        lines = lines.mapValues { Line(count: $0.count, toldAt: $0.toldAt?.back(by: step)) }
    }

    /// Notes the end of an attempt; returns what is to be told now, if anything is.
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
