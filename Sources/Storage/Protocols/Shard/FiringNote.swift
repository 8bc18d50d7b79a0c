package import RelayModel

/// What one change did to subscriptions: which it fired, and why some of those reached no device.
///
/// The step that moves the progress past the change records it. So it is recorded exactly once,
/// however often the change is worked.
package struct FiringNote: Sendable, Hashable {
    /// The change.
    package var position: LogPosition
    /// When it was appended.
    package var at: Timestamp
    /// The serials of the subscriptions that it fired, ascending.
    package var fired: [UInt64]
    /// The fired subscriptions that owe nothing to any device.
    package var unreached: [UnreachedFiring]
    /// The serials of subscriptions whose conditions had an error on the change, if their owners
    /// may know of the change.
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

    /// The number of firings and errors.
    package var count: Int { fired.count + unreached.count + errors.count }
}

/// A subscription that a change fired without reaching a device.
package struct UnreachedFiring: Sendable, Hashable {
    /// Why a firing owes nothing to any device.
    package enum Reason: UInt8, Sendable, Hashable, CaseIterable {
        /// The owner has no device: none was registered, or its token is no longer valid.
        case noDevice = 1
        /// The owner's only devices are those that made the change.
        case origin = 2
        /// The push shows nothing, and a push of another subscription went to the same devices.
        case merged = 3
    }

    /// The subscription.
    package var serial: UInt64
    /// The reason.
    package var reason: Reason

    package init(serial: UInt64, reason: Reason) {
        self.serial = serial
        self.reason = reason
    }
}
