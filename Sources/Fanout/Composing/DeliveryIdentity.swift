import Crypto
package import RelayModel

/// Computes the IDs of a change's deliveries and notifications.
///
/// The IDs depend only on the store, the log position, and the serials of the registry. So a
/// repetition after a crash carries the same IDs, and the IDs of two stores never collide. Their
/// form is UUID version 8 (RFC 9562 §5.8) over SHA-256.
package struct DeliveryIdentity: Sendable {
    private let store: UUIDBytes

    package init(store: UUIDBytes) {
        self.store = store
    }

    /// Returns the ID of the delivery that the change at `position` owes to a device because of a
    /// subscription.
    package func deliveryID(
        position: LogPosition, subscriptionSerial: UInt64, deviceSerial: UInt64
    ) -> DeliveryID {
        DeliveryID(uuid(kind: 1, position, subscriptionSerial, deviceSerial))
    }

    /// Returns the `nid` of a change for one user.
    ///
    /// If the change fires several subscriptions of the user, their notifications have the same
    /// `nid` (CloudKit).
    package func notificationID(position: LogPosition, owner: UserID) -> UUIDBytes {
        var hasher = SHA256()
        hasher.update(data: Array(owner.rawValue.utf8))
        let digest = Array(hasher.finalize())
        return uuid(kind: 2, position, Self.word(digest, at: 0), Self.word(digest, at: 8))
    }

    private func uuid(
        kind: UInt64, _ position: LogPosition, _ first: UInt64, _ second: UInt64
    ) -> UUIDBytes {
        var input: [UInt8] = []
        input.reserveCapacity(48)
        for word in [store.high, store.low, kind, position.rawValue, first, second] {
            for shift in stride(from: UInt64(56), through: 0, by: -8) {
                input.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        let digest = Array(SHA256.hash(data: input))
        let high = Self.word(digest, at: 0) & ~0xF000 | 0x8000
        let low = Self.word(digest, at: 8) & ~(3 << 62) | 2 << 62
        return UUIDBytes(high: high, low: low)
    }

    private static func word(_ digest: [UInt8], at start: Int) -> UInt64 {
        digest[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
