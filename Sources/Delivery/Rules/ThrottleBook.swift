package import RelayModel

/// When devices got the last pushes of subscriptions that are not to push more than so often.
///
/// What finds no place is told together with what follows, and takes the first place that is free:
/// until it has, nothing else takes one. A restart forgets the book.
package struct ThrottleBook: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let token: DeviceToken
        let subscriptionID: SubscriptionID
        let database: DatabaseScope?

        init(_ delivery: Delivery) {
            container = delivery.container
            token = delivery.token
            subscriptionID = delivery.subscriptionID
            database = delivery.database
        }
    }

    private struct Line {
        /// When its last pushes went, the oldest first.
        var sent: [Timestamp] = []
        /// Whether something waits for a place.
        var isWaitedFor = false
    }

    /// Subscriptions and devices that are remembered, the last ones.
    private static let limit = 16_384

    private var lines = RecentMemory<Key, Line>(limit: limit)
    /// The deliveries that have had their place: they take one, however often they are sent.
    private var placed = RecentMemory<DeliveryID, Void>(limit: limit)

    /// Nothing has been sent yet.
    package init() {}

    /// Takes a place for `delivery`, which is about to be sent; returns when there will be one if
    /// there is none now.
    package mutating func place(
        _ delivery: Delivery, _ throttle: PushThrottle, at now: Timestamp
    ) -> Timestamp? {
        guard placed[delivery.id] == nil else { return nil }
        let key = Key(delivery)
        let span = Duration.seconds(throttle.seconds)
        var line = lines[key] ?? Line()
        line.sent.removeAll { $0.advanced(by: span) <= now }
        defer { lines[key] = line }
        let isFull = line.sent.count >= throttle.pushes
        if isFull || line.isWaitedFor && delivery.standsFor == nil {
            line.isWaitedFor = true
            let leaving = line.sent.count - throttle.pushes
            return isFull ? line.sent[leaving].advanced(by: span) : now
        }
        line.isWaitedFor = false
        line.sent.append(now)
        placed[delivery.id] = ()
        return nil
    }

    /// The clock goes `step` later than it did.
    package mutating func clockWasSetBack(by step: Duration) {
        lines.update { line in
            Line(sent: line.sent.map { $0.back(by: step) }, isWaitedFor: line.isWaitedFor)
        }
    }
}
