import RelayModel

/// How often devices got pushes of subscriptions that are not to push more than so often, in one
/// life: a restart begins with no places taken.
struct ThrottleModel {
    private struct Key: Hashable {
        let container: ContainerKey
        let token: DeviceToken
        let subscription: SubscriptionID
    }

    private var sent: [Key: [(id: DeliveryID, at: Timestamp)]] = [:]

    /// Notes that a delivery is sent; says what is wrong about that, if anything is.
    ///
    /// What is sent again has had its place.
    mutating func note(_ owed: OwedDelivery, at now: Timestamp) -> String? {
        guard let throttle = owed.kindness?.subscription.throttle else { return nil }
        let delivery = owed.delivery
        let key = Key(
            container: delivery.container, token: delivery.token,
            subscription: delivery.subscriptionID)
        let times = sent[key] ?? []
        guard !times.contains(where: { $0.id == delivery.id }) else { return nil }
        sent[key] = times + [(delivery.id, now)]
        let span = Duration.seconds(throttle.seconds)
        let recent = times.count { now < $0.at.advanced(by: span) }
        guard recent >= throttle.pushes else { return nil }
        return "is push \(recent + 1) of \(throttle.pushes) in \(throttle.seconds) seconds"
    }

    /// The clock goes `step` later than it did.
    mutating func clockWasSetBack(by step: Duration) {
        sent = sent.mapValues { $0.map { ($0.id, $0.at.advanced(by: .zero - step)) } }
    }
}
