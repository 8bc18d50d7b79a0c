package import RelayModel

/// What one settling transaction records.
package struct SettledStep: Sendable, Hashable {
    /// The mark at which the progress must stand before the step.
    package var from: ProgressMark
    /// The mark after the step; equal to `from` if only retries were settled.
    package var to: ProgressMark
    /// The receipt of each attempt, in any order.
    package var receipts: [DeliveryReceipt] = []
    /// The retries to write: new ones, and those that were attempted again without success.
    package var retries: [Retry] = []
    /// The retries that ended, with or without success.
    package var endedRetries: [DeliveryID] = []
    /// The throttle places that pushes took.
    package var places: [ThrottlePlace] = []
    /// The deliveries that ended without success.
    package var deadLetters: [DeadLetter] = []
    /// The tokens that the gateway declared dead.
    package var deadTokens: [DeadToken] = []
    /// The devices' badges as of ``to``.
    ///
    /// If several deliveries raised a badge, this is the last value.
    package var badges: [BadgeHolder: Int64] = [:]
    /// The ranges of the changes that the step passes.
    package var newRanges: [NewRange] = []
    /// How far ranges are settled.
    package var rangeSteps: [RangeStep] = []
    /// The amounts to add to the containers' accounts.
    package var tallies: [ContainerKey: DeliveryTally] = [:]
    /// The notifications for inboxes.
    ///
    /// Existing ones stay unchanged.
    package var inbox: [InboxEntry] = []
    /// What the changes and ranges that the step passes did to subscriptions.
    package var firings: [FiringNote] = []

    /// Creates a step that records nothing but the progress.
    package init(from: ProgressMark, to: ProgressMark) {
        self.from = from
        self.to = to
    }
}

/// The amounts that one step adds to the account of a container.
package struct DeliveryTally: Sendable, Hashable {
    /// The number of deliveries that the step passes.
    ///
    /// Their first attempt has ended, whatever the outcome.
    package var owed: Int
    /// The number of deliveries that the gateway accepted, at any attempt.
    package var delivered: Int
    /// The number of deliveries whose devices were told over their connections.
    package var seen: Int

    /// Creates a tally.
    ///
    /// The defaults are zero.
    package init(owed: Int = 0, delivered: Int = 0, seen: Int = 0) {
        self.owed = owed
        self.delivered = delivered
        self.seen = seen
    }
}

/// The device that shows a badge, and the user for whom the badge counts.
package struct BadgeHolder: Sendable, Hashable {
    /// The container and environment of the device.
    package var container: ContainerKey
    /// The device.
    package var deviceID: DeviceID
    /// The user of the device.
    ///
    /// The badge of an earlier owner of the device is not recorded.
    package var owner: UserID

    package init(container: ContainerKey, deviceID: DeviceID, owner: UserID) {
        self.container = container
        self.deviceID = deviceID
        self.owner = owner
    }
}
