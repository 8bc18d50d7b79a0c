import RelayModel
import Storage

/// Limits how often one device gets a push: by the gateway's wishes, and by the operator's limit
/// for background pushes.
///
/// Apple asks for no more than two or three background pushes an hour, and throttles the device
/// beyond that. The limit does not apply to the courier, whose pushes cost a device nothing. A push
/// that must wait gets a reserved place, so that it waits only once.
struct DevicePacing: Sendable {
    private struct Key: Hashable {
        let container: ContainerKey
        let token: DeviceToken

        init(_ delivery: Delivery) {
            container = delivery.container
            token = delivery.token
        }
    }

    private let silentInterval: Duration?
    private let silentBurst: Int
    private let limit: Int
    private var holds: [Key: Timestamp] = [:]
    /// The time when the budget of a device is full again.
    private var wholeAt: [Key: Timestamp] = [:]
    /// The deliveries that already had a place.
    ///
    /// A restart forgets the budgets, and these too.
    private var reserved: RecentMemory<DeliveryID, Void>

    /// Creates a pacing that allows each device `silentPerHour` background pushes an hour, at once
    /// or spread.
    ///
    /// 0 allows any number.
    ///
    /// At most `limit` devices are remembered for each rule.
    init(silentPerHour: Int, limit: Int = 65_536) {
        precondition(silentPerHour >= 0 && limit > 0)
        silentInterval = silentPerHour > 0 ? .seconds(3600) / silentPerHour : nil
        silentBurst = silentPerHour
        self.limit = limit
        reserved = RecentMemory(limit: limit)
    }

    /// Moves all times back by `step`, by which the clock was set back.
    mutating func clockWasSetBack(by step: Duration) {
        holds = holds.mapValues { $0.back(by: step) }
        wholeAt = wholeAt.mapValues { $0.back(by: step) }
    }

    /// Notes that the gateway wants the device of `delivery` to be left alone until `moment`.
    mutating func hold(_ delivery: Delivery, until moment: Timestamp, at now: Timestamp) {
        if holds.count >= limit { holds = holds.filter { now < $0.value } }
        guard holds.count < limit else { return }
        let key = Key(delivery)
        holds[key] = max(moment, holds[key] ?? moment)
    }

    /// Returns until when the gateway wants the device of `delivery` to be left alone, or `nil` if
    /// the delivery may go.
    mutating func hold(on delivery: Delivery, at now: Timestamp) -> Timestamp? {
        guard !holds.isEmpty, let until = holds[Key(delivery)] else { return nil }
        if now < until { return until }
        holds[Key(delivery)] = nil
        return nil
    }

    /// Reserves a place for `delivery`, which is about to be sent.
    ///
    /// Returns its time, or `nil` if the delivery may go at once.
    ///
    /// A delivery takes one place, however often it is sent. `reason` is why it waited before, if
    /// it did.
    mutating func reserve(
        _ delivery: Delivery, waitingFor reason: WaitReason?, at now: Timestamp
    ) -> Timestamp? {
        guard let silentInterval, delivery.gateway == .apns,
            delivery.notification.pushType == .background, reason != .devicePace,
            reserved[delivery.id] == nil
        else { return nil }
        reserved[delivery.id] = ()
        if wholeAt.count >= limit { wholeAt = wholeAt.filter { now < $0.value } }
        let key = Key(delivery)
        let whole = max(now, wholeAt[key] ?? now).advanced(by: silentInterval)
        if wholeAt.count < limit || wholeAt[key] != nil { wholeAt[key] = whole }
        let slot = whole.advanced(by: .zero - silentInterval * silentBurst)
        return slot <= now ? nil : slot
    }
}
