package import RelayModel

/// Who knows which devices are connected, and what they were told over their connections.
///
/// A push that is not to go to a connected device waits for it: until the connection has told of
/// the change and has proven after that that it lives, or until it cannot any more.
package protocol DevicePresence: Sendable {
    /// Begins a wait for the device of `delivery`; `false` if it is not connected, or if too much
    /// waits for it already.
    ///
    /// It is asked under a lock, and returns at once.
    func awaitDevice(of delivery: Delivery, at now: Timestamp) -> Bool

    /// Ends the wait for a delivery; says whether its device has seen what it tells.
    ///
    /// It is asked under a lock, and returns at once.
    func endWait(for delivery: DeliveryID) -> Bool

    /// Learns that deliveries that wait are kept durably: from now on it may be said what became of
    /// the wait.
    func watch(_ deliveries: [Delivery])

    /// The deliveries whose waits have come to something; it suspends until there are some, and
    /// returns none when the task is cancelled. For one reader.
    func decided() async -> [DeliveryID]
}
