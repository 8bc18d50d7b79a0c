import Delivery
import RelayModel

/// Computes which of a subscription's pushes to one device would remain under the holds that both
/// ask for.
///
/// The relay's own rules are applied to the past of the device: what is held, what is told
/// together, and when the one push is sent that stands for several. Connections of the device are
/// not considered. This is a pure value.
struct HeldRehearsal {
    /// The fate of pushes.
    struct Outcome: Sendable, Hashable {
        /// The number of pushes that would have been sent.
        var pushes = 0
        /// The number of deliveries that the pushes of other deliveries would have told.
        var together = 0
        /// The number of deliveries that would wait until the subscription is resumed.
        var waiting = 0
        /// The number of deliveries that would have been held, by the first reason for it.
        var held: [HoldReason: Int] = [:]

        static func += (sum: inout Outcome, other: Outcome) {
            sum.pushes += other.pushes
            sum.together += other.together
            sum.waiting += other.waiting
            sum.held.merge(other.held, uniquingKeysWith: +)
        }
    }

    private struct Item {
        let number: UInt64
        /// The number of deliveries that it stands for, once it is part of a digest.
        var standsFor: Int64?
        var isHeld = false
    }

    private var rules = HoldRules()
    private var throttles = ThrottleMemory(isRecorded: false)
    private let throttle: PushThrottle?
    private var delivery: OwedDelivery
    private var last: UInt64 = 0
    /// The deliveries that wait separately.
    private var singles: [(due: Timestamp, item: Item)] = []
    /// The digest that is open, with the time at which it is due.
    private var digest: (due: Timestamp, item: Item)?
    private(set) var outcome = Outcome()
    /// The newest pushes that would have told of several deliveries: their numbers, and how many
    /// they stand for.
    private(set) var told: [(number: UInt64, count: Int64)] = []
    /// The minimum number of these that is kept.
    private static let mostTold = 64

    /// Creates a rehearsal in which nothing has been held yet.
    init(of subscription: Subscription, to device: DeviceKindness) {
        throttle = subscription.kindness.throttle
        delivery = Self.delivery(of: subscription)
        delivery.kindness = Kindness(
            subscription: subscription.kindness, device: device, subscriptionSerial: nil,
            deviceSerial: nil)
    }

    /// Returns a delivery of the subscription, with what the rules look at.
    private static func delivery(of subscription: Subscription) -> OwedDelivery {
        guard let token = DeviceToken(rawValue: String(repeating: "0", count: 64)),
            let id = DeviceID(rawValue: "device")
        else { preconditionFailure("a token and an ID that are valid") }
        let start = Timestamp(seconds: 0)
        var delivery = Delivery(
            id: DeliveryID(UUIDBytes(high: 0, low: 0)),
            ordinal: DeliveryOrdinal(position: .start, offset: 0),
            container: subscription.container, subscriptionID: subscription.id,
            owner: subscription.owner,
            device: Device(
                id: id, container: subscription.container, owner: subscription.owner,
                gatewayEnvironment: .production, token: token),
            registeredAt: start, appendedAt: start,
            notification: PushNotification(
                pushType: subscription.notificationInfo.isVisible ? .alert : .background,
                priority: 5, topic: "", payload: []))
        delivery.database = subscription.database
        return OwedDelivery(delivery, subscriptionSerial: 1, deviceSerial: 1)
    }

    /// Fires the subscription by a change that was appended at `moment`, which must not be before
    /// earlier ones.
    ///
    /// - Returns: The number of the push.
    @discardableResult mutating func fire(at moment: Timestamp) -> UInt64 {
        pass(upTo: moment)
        last += 1
        judge(Item(number: last), at: moment)
        return last
    }

    /// Lets everything become due that waits for a time.
    mutating func finish() { pass(upTo: nil) }

    private mutating func pass(upTo moment: Timestamp?) {
        while let next = nextDue, moment.map({ next <= $0 }) ?? true {
            if let due = digest, due.due == next {
                digest = nil
                judge(due.item, at: next)
            } else if let index = singles.firstIndex(where: { $0.due == next }) {
                judge(singles.remove(at: index).item, at: next)
            }
        }
    }

    private var nextDue: Timestamp? {
        let single = singles.map(\.due).min()
        guard let digest else { return single }
        return single.map { min($0, digest.due) } ?? digest.due
    }

    private mutating func judge(_ item: Item, at now: Timestamp) {
        delivery.delivery.id = DeliveryID(UUIDBytes(high: 0, low: item.number))
        delivery.delivery.standsFor = item.standsFor
        if let hold = rules.hold(on: delivery, at: now) {
            return keep(item, hold.reason, until: hold.until)
        }
        if let throttle, let until = throttles.place(delivery.delivery, throttle, at: now) {
            return keep(item, .throttle, until: until)
        }
        outcome.pushes += 1
        outcome.together += Int(item.standsFor ?? 1) - 1
        guard let count = item.standsFor, count > 1 else { return }
        told.append((item.number, count))
        if told.count >= 2 * Self.mostTold { told.removeFirst(Self.mostTold) }
    }

    private mutating func keep(_ item: Item, _ reason: HoldReason, until: Timestamp?) {
        var item = item
        if !item.isHeld { outcome.held[reason, default: 0] += 1 }
        item.isHeld = true
        guard let until else {
            outcome.waiting += Int(item.standsFor ?? 1)
            return
        }
        guard reason.isTogether || singles.count >= Limits.maximumHeldDeliveries else {
            return singles.append((until, item))
        }
        let count = item.standsFor ?? 1
        if let open = digest {
            // The newest delivery is sent for all of them.
            item.standsFor = (open.item.standsFor ?? 1) + count
            digest = (open.due, item)
        } else {
            item.standsFor = count
            digest = (until, item)
        }
    }
}
