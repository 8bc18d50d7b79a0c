package import RelayModel
package import Storage

/// What became of a change when the follower judged it, for whoever watches.
package struct JudgedChange: Sendable {
    /// What became of it.
    package enum Verdict: Sendable, Hashable {
        /// It was judged, and fired as many subscriptions as are counted.
        case judged
        /// It is older than what was applied to its record, and fires nothing.
        case stale
        /// It cannot be worked, and is set aside with the reason.
        case setAside(String)
    }

    /// A subscription that it fired.
    package struct Fired: Sendable, Hashable {
        /// Its number.
        package let serial: UInt64
        /// Its name.
        package let id: SubscriptionID
        /// Whose it is.
        package let owner: UserID

        package init(serial: UInt64, id: SubscriptionID, owner: UserID) {
            self.serial = serial
            self.id = id
            self.owner = owner
        }
    }

    /// How many fired subscriptions are named: nobody reads more of one change.
    package static let mostNamed = 100

    /// Where it stands in the log.
    package let position: LogPosition
    /// Whose data it is.
    package let container: ContainerKey
    /// When it was appended.
    package let appendedAt: Timestamp
    /// The change, which need not have been read.
    package let change: LoggedChange
    /// What became of it.
    package let verdict: Verdict
    /// How many subscriptions it fired.
    package var firedCount = 0
    /// The first of them, at most ``mostNamed``.
    package var fired: [Fired] = []
    /// Devices that get nothing because they made the change, as far as the first thousand fired
    /// subscriptions say.
    package var leftOut: [SuppressedDevice] = []

    init(_ entry: FollowedEntry, _ change: LoggedChange, _ verdict: Verdict) {
        position = entry.position
        container = entry.container
        appendedAt = entry.appendedAt
        self.change = change
        self.verdict = verdict
    }
}

/// Who watches changes being judged.
///
/// The follower waits for nobody: what is told is to be put aside at once. A change that is worked
/// again after a restart is told again.
package struct ChangeWatch: Sendable {
    /// Whether anybody wants to know of a container's changes; it is asked for each of them.
    package let isOn: @Sendable (ContainerKey) -> Bool
    /// Is told what became of one.
    package let tell: @Sendable (JudgedChange) -> Void

    package init(
        isOn: @escaping @Sendable (ContainerKey) -> Bool = { _ in true },
        tell: @escaping @Sendable (JudgedChange) -> Void
    ) {
        self.isOn = isOn
        self.tell = tell
    }

    /// A watch that tells this one and another, each of what it asks for.
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
    /// Tells of a change that fired nothing.
    func watch(_ change: LoggedChange, _ verdict: JudgedChange.Verdict, _ entry: FollowedEntry) {
        guard let watch, watch.isOn(entry.container) else { return }
        watch.tell(JudgedChange(entry, change, verdict))
    }

    /// Tells of a change that fired the subscriptions with these serials.
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
