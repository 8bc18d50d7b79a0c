package import RelayModel

/// What one change did to subscriptions: those that it fired, and how those fared that reached
/// nobody.
///
/// It is recorded by the step that moves the progress past the change, and so exactly once,
/// however often the change is worked.
package struct FiringNote: Sendable, Hashable {
    /// The change.
    package var position: LogPosition
    /// When it was appended.
    package var at: Timestamp
    /// The serials of the subscriptions that it fired, ascending.
    package var fired: [UInt64]
    /// Those of them by which nothing was owed to any device.
    package var unreached: [UnreachedFiring]
    /// Subscriptions whose conditions had an error on it, of those whose owners may know of it.
    package var errors: [UInt64]

    package init(
        position: LogPosition, at: Timestamp, fired: [UInt64] = [],
        unreached: [UnreachedFiring] = [], errors: [UInt64] = []
    ) {
        self.position = position
        self.at = at
        self.fired = fired
        self.unreached = unreached
        self.errors = errors
    }

    /// How much it says.
    package var count: Int { fired.count + unreached.count + errors.count }
}

/// A subscription that a change fired, and that reached no device.
package struct UnreachedFiring: Sendable, Hashable {
    /// Why a firing owes nothing to any device.
    package enum Reason: UInt8, Sendable, Hashable, CaseIterable {
        /// The owner has no device: none was registered, or its token was forgotten.
        case noDevice = 1
        /// The owner's devices are those that made the change.
        case origin = 2
        /// The push shows nothing, and one of another subscription went to the same devices.
        case merged = 3
    }

    /// The subscription.
    package var serial: UInt64
    /// Why.
    package var reason: Reason

    package init(serial: UInt64, reason: Reason) {
        self.serial = serial
        self.reason = reason
    }
}
