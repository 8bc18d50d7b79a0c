package import RelayModel
package import Storage

extension DeliveryTracker {
    /// The number of deliveries of ranges for which there is room.
    package var rangeRoom: Int { ranges.room }

    /// Admits a delivery of a range, and returns the ticket of its first attempt.
    ///
    /// There must be room. `offset` is where the range begins, if it is new here.
    package mutating func admit(
        _ delivery: OwedDelivery, range: UInt64, offset: UInt32
    ) -> Ticket {
        ranges.admit(delivery, range: range, offset: offset)
    }

    /// Notes that every delivery of a range was admitted.
    ///
    /// `firing` is recorded with the step that ends the range.
    package mutating func finishRange(
        _ range: UInt64, offset: UInt32, firing: FiringNote? = nil
    ) {
        ranges.finish(range, offset: offset, firing: firing)
    }
}
