import RelayModel
import Storage

/// Checks across crashes how often devices get pushes of subscriptions with a throttle.
///
/// A push that was with the gateway at a crash and is not durable may be sent once more.
struct ThrottleModel {
    private struct Push {
        let id: DeliveryID
        var at: Timestamp
        var isDurable = false
    }

    private var sent: [ThrottledLine: [Push]] = [:]
    private var lines: [DeliveryID: ThrottledLine] = [:]

    /// Takes note that a delivery is sent; returns what is wrong about that, or `nil`.
    ///
    /// A delivery that is sent again uses its old place.
    mutating func note(_ owed: OwedDelivery, at now: Timestamp) -> String? {
        guard let throttle = owed.kindness?.subscription.throttle else { return nil }
        let line = ThrottledLine(owed.delivery)
        let pushes = sent[line] ?? []
        guard !pushes.contains(where: { $0.id == owed.delivery.id }) else { return nil }
        sent[line] = pushes + [Push(id: owed.delivery.id, at: now)]
        lines[owed.delivery.id] = line
        let span = Duration.seconds(throttle.seconds)
        let recent = pushes.count { now < $0.at.advanced(by: span) }
        guard recent >= throttle.pushes else { return nil }
        return "is push \(recent + 1) of \(throttle.pushes) in \(throttle.seconds) seconds"
    }

    /// Takes note that the ends of these deliveries are durable.
    mutating func recorded(_ ids: some Sequence<DeliveryID>) {
        for id in ids {
            guard let line = lines[id] else { continue }
            sent[line] = sent[line]?.map { push in
                var push = push
                push.isDurable = push.isDurable || push.id == id
                return push
            }
        }
    }

    /// Forgets the pushes that are not durable, as a crash does.
    mutating func crash() {
        sent = sent.mapValues { $0.filter(\.isDurable) }
    }

    /// Takes note that the clock was set back by `step`.
    mutating func clockWasSetBack(by step: Duration) {
        sent = sent.mapValues { pushes in
            pushes.map { push in
                var push = push
                push.at = push.at.advanced(by: .zero - step)
                return push
            }
        }
    }
}
