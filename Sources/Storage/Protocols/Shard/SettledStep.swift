package import RelayModel

/// What one transaction of settling records.
package struct SettledStep: Sendable, Hashable {
    /// Where the progress must stand.
    package var from: ProgressMark
    /// Where it stands afterwards; equal to `from` if only retries were settled.
    package var to: ProgressMark
    /// A record of each attempt with its outcome, in any order.
    package var receipts: [DeliveryReceipt] = []
    /// Deliveries that must be tried again: new ones, and those tried again without success.
    package var retries: [Retry] = []
    /// Retries that ended, with or without success.
    package var endedRetries: [DeliveryID] = []
    /// The places that pushes took among those of their subscriptions' throttles.
    package var places: [ThrottlePlace] = []
    /// Deliveries that ended without success.
    package var deadLetters: [DeadLetter] = []
    /// Tokens that the gateway says are dead.
    package var deadTokens: [DeadToken] = []
    /// Devices' badges as of ``to``: where several deliveries raised one, the last.
    package var badges: [BadgeHolder: Int64] = [:]
    /// Ranges of the changes that the step passes.
    package var newRanges: [NewRange] = []
    /// How far ranges are settled.
    package var rangeSteps: [RangeStep] = []
    /// What the accounts of containers grow by.
    package var tallies: [ContainerKey: DeliveryTally] = [:]
    /// Notifications for inboxes; one that is there already stays as it is.
    package var inbox: [InboxEntry] = []
    /// What the changes and ranges that it passes did to subscriptions.
    package var firings: [FiringNote] = []

    /// Creates a step that records nothing but the progress.
    package init(from: ProgressMark, to: ProgressMark) {
        self.from = from
        self.to = to
    }
}

/// What one step adds to the account of a container.
package struct DeliveryTally: Sendable, Hashable {
    /// Deliveries that the step passes: their first attempt has ended, however.
    package var owed: Int
    /// Deliveries that the gateway accepted, at whichever attempt.
    package var delivered: Int
    /// Deliveries whose devices were told over their connections.
    package var seen: Int

    /// Creates a tally, of nothing unless said otherwise.
    package init(owed: Int = 0, delivered: Int = 0, seen: Int = 0) {
        self.owed = owed
        self.delivered = delivered
        self.seen = seen
    }
}

/// The device that shows a badge, and the user for whom it counts.
package struct BadgeHolder: Sendable, Hashable {
    /// The container and environment of the device.
    package var container: ContainerKey
    /// The device.
    package var deviceID: DeviceID
    /// The user whose device it was: what an earlier owner's badge was is not recorded.
    package var owner: UserID

    package init(container: ContainerKey, deviceID: DeviceID, owner: UserID) {
        self.container = container
        self.deviceID = deviceID
        self.owner = owner
    }
}
