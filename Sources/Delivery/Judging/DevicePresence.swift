package import RelayModel

/// Knows which devices are connected, and what they were told over their connections.
///
/// A push that must not go to a connected device waits. The wait ends when the connection has told
/// the device of the change and has then proven that it is alive, or when it can no longer do so.
package protocol DevicePresence: Sendable {
    /// Begins a wait for the device of `delivery`.
    ///
    /// Returns `false` if the device is not connected, or if too much already waits for it.
    ///
    /// It is called under a lock, and must return at once.
    func awaitDevice(of delivery: Delivery, at now: Timestamp) -> Bool

    /// Ends the wait for a delivery.
    ///
    /// Returns whether its device has seen the change.
    ///
    /// It is called under a lock, and must return at once.
    func endWait(for delivery: DeliveryID) -> Bool

    /// Notes that waiting deliveries are durable.
    ///
    /// From now on `decided()` may report the results of their waits.
    func watch(_ deliveries: [Delivery])

    /// Returns the deliveries whose waits have ended.
    ///
    /// It suspends until there are some, and returns none when the task is cancelled. Only one
    /// reader may call it.
    func decided() async -> [DeliveryID]
}
