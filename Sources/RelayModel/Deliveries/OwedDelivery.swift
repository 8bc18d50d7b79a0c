/// A delivery with the registry's numbers of what it came from.
package struct OwedDelivery: Sendable, Hashable {
    /// The delivery.
    package var delivery: Delivery
    /// The serial of the subscription's version.
    package var subscriptionSerial: UInt64
    /// The serial of the device's version.
    package var deviceSerial: UInt64

    /// What may hold it back; `nil` if nothing does, and where that is still to be asked for.
    ///
    /// It is not kept with a delivery that waits: what is asked for then counts.
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
