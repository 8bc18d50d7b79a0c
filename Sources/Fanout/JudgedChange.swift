package import RelayModel
package import Storage

/// What happened to a change when the follower judged it.
package struct JudgedChange: Sendable {
    /// The result of the judgement.
    package enum Verdict: Sendable, Hashable {
        /// The change was judged, and fired `firedCount` subscriptions.
        case judged
        /// The change is older than what was already applied to its record, and fires nothing.
        case stale
        /// The change cannot be worked, and was set aside for this reason.
        case setAside(String)
    }

    /// A subscription that the change fired.
    package struct Fired: Sendable, Hashable {
        /// The serial of the subscription.
        package let serial: UInt64
        /// The ID of the subscription.
        package let id: SubscriptionID
        /// The owner of the subscription.
        package let owner: UserID

        package init(serial: UInt64, id: SubscriptionID, owner: UserID) {
            self.serial = serial
            self.id = id
            self.owner = owner
        }
    }

    /// The maximum number of fired subscriptions that are named.
    ///
    /// No reader needs more for one change.
    package static let mostNamed = 100

    /// The position of the change in the log.
    package let position: LogPosition
    /// The container of the change.
    package let container: ContainerKey
    /// The time when the change was appended.
    package let appendedAt: Timestamp
    /// The change, which may not have been read.
    package let change: LoggedChange
    /// The result of the judgement.
    package let verdict: Verdict
    /// The number of subscriptions that the change fired.
    package var firedCount = 0
    /// The first fired subscriptions, at most ``mostNamed``.
    package var fired: [Fired] = []
    /// The devices that get nothing because they made the change.
    ///
    /// Only the first portion of fired subscriptions, about a thousand, is considered.
    package var leftOut: [SuppressedDevice] = []

    init(_ entry: FollowedEntry, _ change: LoggedChange, _ verdict: Verdict) {
        position = entry.position
        container = entry.container
        appendedAt = entry.appendedAt
        self.change = change
        self.verdict = verdict
    }
}

/// An observer of changes being judged.
///
/// The follower does not wait for observers, so `tell` must return at once. A change that is worked
/// again after a restart is reported again.
package struct ChangeWatch: Sendable {
    /// Returns whether the changes of a container are observed.
    ///
    /// It is called for each change.
    package let isOn: @Sendable (ContainerKey) -> Bool
    /// Receives what happened to a change.
    package let tell: @Sendable (JudgedChange) -> Void

    package init(
        isOn: @escaping @Sendable (ContainerKey) -> Bool = { _ in true },
        tell: @escaping @Sendable (JudgedChange) -> Void
    ) {
        self.isOn = isOn
        self.tell = tell
    }

    /// Returns an observer that calls this one and another, each for the containers that it
    /// observes.
    package func and(_ other: ChangeWatch?) -> ChangeWatch {
        guard let other else { return self }
        return ChangeWatch { container in
            isOn(container) || other.isOn(container)
        } tell: { change in
            if isOn(change.container) { tell(change) }
            if other.isOn(change.container) { other.tell(change) }
        }
    }
}

extension Follower {
    /// Reports a change that fired nothing.
    func watch(_ change: LoggedChange, _ verdict: JudgedChange.Verdict, _ entry: FollowedEntry) {
        guard let watch, watch.isOn(entry.container) else { return }
        watch.tell(JudgedChange(entry, change, verdict))
    }

    /// Reports a change that fired the subscriptions with these serials.
    mutating func watch(
        _ fired: [UInt64], by change: RecordChange, _ entry: FollowedEntry,
        leftOut: [SuppressedDevice] = []
    ) {
        guard let watch, watch.isOn(entry.container) else { return }
        var judged = JudgedChange(entry, .read(change), .judged)
        judged.firedCount = fired.count
        for serial in fired.prefix(JudgedChange.mostNamed) {
            guard let subscription = state.subscription(serial, of: entry.container) else {
                continue
            }
            judged.fired.append(
                JudgedChange.Fired(
                    serial: serial, id: subscription.id, owner: subscription.owner))
        }
        judged.leftOut = leftOut
        watch.tell(judged)
    }
}
