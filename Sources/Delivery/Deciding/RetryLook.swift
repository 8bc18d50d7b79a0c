import RelayModel
import Storage

extension DeliveryState {
    /// What is to be known before retries are read.
    struct RetryLook: Sendable {
        /// The retries that must not be taken up.
        let excluded: Set<DeliveryID>
        /// How many others may be.
        let room: Int
        /// The lanes that wait.
        let held: Halts.Held
        /// When one of them may try.
        let nextTrial: Timestamp?
        /// How many deliveries had been adopted as retries by then.
        let adoptions: UInt64
    }
}
