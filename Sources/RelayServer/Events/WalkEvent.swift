import Delivery
import Fanout
package import RelayModel
import Storage

/// Something that happened to a change on its walk, for listeners.
///
/// It contains no device token and no credential.
package struct WalkEvent: Sendable {
    /// The kind of event.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// A change was judged.
        case change
        /// A change fired a subscription.
        case match
        /// A push that is owed because of the change was handed over for sending.
        case push
        /// An attempt to send the push ended, or the push was not sent, or not yet.
        case answer
    }

    /// The change that the event is about, as far as it is known.
    struct Subject: Sendable, Hashable {
        let operation: ChangeOperation
        let recordType: RecordType
        let recordName: RecordName
    }

    /// The gateway's answer to an attempt, or the reason why none was made.
    ///
    /// It does not contain the delivery, because a delivery has a device token.
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
    /// The time of the event.
    let at: Timestamp
    /// The position of the change in the log.
    let position: LogPosition
    var subject: Subject?
    /// The outcome of a change: `judged`, `snapshot`, `stale` or `setAside`.
    var outcome: String?
    /// The number of subscriptions that a change fired.
    var fired: Int?
    /// The first subscriptions that a change fired.
    var firedFirst: [JudgedChange.Fired] = []
    /// The devices that get nothing because they made the change.
    var leftOut: [DeviceID] = []
    var user: UserID?
    var subscription: SubscriptionID?
    var device: DeviceID?
    var delivery: DeliveryID?
    var notification: PushNotification?
    /// The result of an attempt, and the resulting state of the push.
    var answer: Answer?

    /// The possible outcomes of changes.
    static let outcomes = ["judged", "snapshot", "stale", "setAside"]

    /// The approximate size of the event in memory.
    var bytes: Int {
        400 + (notification?.payload.count ?? 0) + firedFirst.count * 64 + leftOut.count * 32
            + (subject?.recordName.rawValue.utf8.count ?? 0)
    }
}

extension WalkEvent {
    /// Returns the events of a judged change: one for the change, and one for each of the first
    /// subscriptions that it fired.
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

    /// Returns the event of a push that was handed over for sending.
    static func push(_ delivery: Delivery, at now: Timestamp) -> WalkEvent {
        var event = WalkEvent(kind: .push, at: now, position: delivery.ordinal.position)
        event.user = delivery.owner
        event.subscription = delivery.subscriptionID
        event.device = delivery.deviceID
        event.delivery = delivery.id
        event.notification = delivery.notification
        return event
    }

    /// Returns the event of an attempt that ended.
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

/// A filter of the events that a listener wants.
package struct EventFilter: Sendable, Hashable {
    /// The kinds of event.
    package var kinds = Set(WalkEvent.Kind.allCases)
    /// The record type of the change; `nil` means any.
    ///
    /// A push whose change is too old to be known has no record type.
    package var recordType: RecordType?
    /// The user of the push, or the owner of a subscription that the change fired; `nil` means any.
    package var user: UserID?
    /// The subscription that fired; `nil` means any.
    package var subscription: SubscriptionID?

    /// Creates a filter that every event passes.
    package init() {}

    /// Returns whether an event passes the filter.
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
