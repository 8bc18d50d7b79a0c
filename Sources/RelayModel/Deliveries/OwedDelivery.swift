/// A delivery with the serials of the subscription and device that it came from.
package struct OwedDelivery: Sendable, Hashable {
    /// The delivery.
    package var delivery: Delivery
    /// The serial of the subscription's version.
    package var subscriptionSerial: UInt64
    /// The serial of the device's version.
    package var deviceSerial: UInt64

    /// What may hold the delivery back; `nil` if nothing does, or if it has not been looked up yet.
    ///
    /// It is not stored with a delivery that waits: the wishes at the time of sending count.
    package var kindness: Kindness? {
        get { apart?.value }
        set { apart = newValue.map { .apart($0) } }
    }

    private var apart: Apart<Kindness>?

    package init(_ delivery: Delivery, subscriptionSerial: UInt64, deviceSerial: UInt64) {
        self.delivery = delivery
        self.subscriptionSerial = subscriptionSerial
        self.deviceSerial = deviceSerial
    }
}
