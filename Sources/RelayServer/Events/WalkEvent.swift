import Delivery
import Fanout
package import RelayModel
import Storage

/// Something that happened to a change on its walk, as listeners are told.
///
/// It has no device token, and nothing by which anybody proves who they are.
package struct WalkEvent: Sendable {
    /// What happened.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A change was judged.
        case change
        /// It fired a subscription.
        case match
        /// A push that it owes was handed over to be sent.
        case push
        /// An attempt to send it ended, or it was not sent, or not yet.
        case answer
    }

    /// The change that it is about, as far as it is known.
    struct Subject: Sendable, Hashable {
        let operation: ChangeOperation
        let recordType: RecordType
        let recordName: RecordName
    }

    /// What the gateway said to an attempt, or why none was made, without its delivery: that has a
    /// token.
    struct Answer: Sendable, Hashable {
        let attempt: UInt16
        let outcome: AttemptEnd
        let status: Int
        let reason: String
        let meaning: String
        let becomes: SettledEnding
        let dueAt: Timestamp?
        let latency: Duration

        init(_ attempt: AnsweredAttempt) {
            self.attempt = attempt.attempt
            outcome = attempt.outcome
            status = attempt.status
            reason = attempt.reason
            meaning = attempt.meaning
            becomes = attempt.ending
            dueAt = attempt.dueAt
            latency = attempt.latency
        }
    }

    let kind: Kind
    /// When.
    let at: Timestamp
    /// Where the change stands in the log.
    let position: LogPosition
    var subject: Subject?
    /// What became of a change: `judged`, `snapshot`, `stale` or `setAside`.
    var outcome: String?
    /// How many subscriptions a change fired.
    var fired: Int?
    /// The first that it fired.
    var firedFirst: [JudgedChange.Fired] = []
    /// The devices that get nothing of it because they made it.
    var leftOut: [DeviceID] = []
    var user: UserID?
    var subscription: SubscriptionID?
    var device: DeviceID?
    var delivery: DeliveryID?
    var notification: PushNotification?
    /// How an attempt ended, and what became of the push.
    var answer: Answer?

    /// The outcomes of changes.
    static let outcomes = ["judged", "snapshot", "stale", "setAside"]

    /// About how many bytes it takes to keep it.
    var bytes: Int {
        400 + (notification?.payload.count ?? 0) + firedFirst.count * 64 + leftOut.count * 32
            + (subject?.recordName.rawValue.utf8.count ?? 0)
    }
}

extension WalkEvent {
    /// The events of a change that was judged: itself, and the first subscriptions that it fired.
    static func events(of judged: JudgedChange, at now: Timestamp) -> [WalkEvent] {
        var event = WalkEvent(kind: .change, at: now, position: judged.position)
        let change = try? judged.change.change()
        event.subject = change.map {
            Subject(
                operation: $0.operation, recordType: $0.recordType,
                recordName: $0.recordID.recordName)
        }
        switch judged.verdict {
        case .judged: event.outcome = change?.isSnapshot == true ? "snapshot" : "judged"
        case .stale: event.outcome = "stale"
        case .setAside: event.outcome = "setAside"
        }
        event.fired = judged.firedCount
        event.firedFirst = judged.fired
        event.leftOut = Array(Set(judged.leftOut.map(\.deviceID)))
            .sorted { $0.rawValue < $1.rawValue }
        let matches = judged.fired.map { fired in
            var match = WalkEvent(kind: .match, at: now, position: judged.position)
            match.subject = event.subject
            match.user = fired.owner
            match.subscription = fired.id
            return match
        }
        return [event] + matches
    }

    /// A push that was handed over.
    static func push(_ delivery: Delivery, at now: Timestamp) -> WalkEvent {
        var event = WalkEvent(kind: .push, at: now, position: delivery.ordinal.position)
        event.user = delivery.owner
        event.subscription = delivery.subscriptionID
        event.device = delivery.deviceID
        event.delivery = delivery.id
        event.notification = delivery.notification
        return event
    }

    /// An attempt that ended.
    static func answer(_ attempt: AnsweredAttempt) -> WalkEvent {
        let delivery = attempt.delivery
        var event = WalkEvent(kind: .answer, at: attempt.at, position: delivery.ordinal.position)
        event.user = delivery.owner
        event.subscription = delivery.subscriptionID
        event.device = delivery.deviceID
        event.delivery = delivery.id
        event.answer = Answer(attempt)
        return event
    }
}

/// Which events a listener wants.
package struct EventFilter: Sendable, Hashable {
    /// What happened.
    package var kinds = Set(WalkEvent.Kind.allCases)
    /// Only what happens to records of this type; a push whose change is long ago is of none.
    package var recordType: RecordType?
    /// Only what happens to this user, or to a change that fired a subscription of theirs.
    package var user: UserID?
    /// Only what this subscription fired.
    package var subscription: SubscriptionID?

    /// Wants all of them.
    package init() {}

    /// Whether an event is wanted.
    func wants(_ event: WalkEvent) -> Bool {
        guard kinds.contains(event.kind) else { return false }
        if let recordType, event.subject?.recordType != recordType { return false }
        if event.kind == .change {
            guard user != nil || subscription != nil else { return true }
            return event.firedFirst.contains { wants($0.owner, $0.id) }
        }
        return wants(event.user, event.subscription)
    }

    private func wants(_ owner: UserID?, _ id: SubscriptionID?) -> Bool {
        (user == nil || user == owner) && (subscription == nil || subscription == id)
    }
}
