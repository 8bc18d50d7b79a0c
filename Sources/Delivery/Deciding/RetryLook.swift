import RelayModel
import Storage

extension DeliveryState {
    /// What must be known before retries are read.
    struct RetryLook: Sendable {
        /// The retries that must not be taken up.
        let excluded: Set<DeliveryID>
        /// The number of other retries that may be taken up.
        let room: Int
        /// The lanes that wait.
        let held: Halts.Held
        /// The time of the next trial of one of these lanes.
        let nextTrial: Timestamp?
        /// The number of deliveries that had been adopted as retries by then.
        let adoptions: UInt64
    }
}
