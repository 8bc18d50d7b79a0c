package import RelayModel
import Storage

/// Why a change fired a subscription or did not, and which devices that reached.
package struct Explanation: Sendable {
    /// The answer.
    package enum Verdict: String, Sendable, Hashable, CaseIterable {
        /// The change fired the subscription.
        case fired
        /// The change did not fire the subscription.
        case didNotFire
        /// What is needed to tell is no longer kept.
        case cannotTell
    }

    /// The position of the change.
    package let position: LogPosition
    /// The subscription, or `nil` if the change alone was enough to answer.
    package let subscriptionID: SubscriptionID?
    /// The owner of the subscription, or `nil` if the change alone was enough to answer.
    package let owner: UserID?
    /// The serial of the version by which the change was judged, if there was one.
    package var serial: UInt64?
    /// The answer.
    package var verdict = Verdict.didNotFire
    /// The step that decided the answer.
    package var deciding = ExplainedStep.Name.appended
    /// The explanation in one sentence.
    package var sentence = ""
    /// The steps, in the order of the walk, up to the one that decided.
    package var steps: [ExplainedStep] = []
    /// The number of comparisons by which the condition fails, if nothing else failed.
    package var missedBy: Int?
    /// The owner's devices.
    package var devices: [ExplainedDevice] = []

    package init(position: LogPosition, subscriptionID: SubscriptionID?, owner: UserID?) {
        self.position = position
        self.subscriptionID = subscriptionID
        self.owner = owner
    }

    /// Whether one more comparison that held would have made the change fire the subscription.
    package var isNear: Bool { verdict == .didNotFire && missedBy == 1 }

    /// Adds a step that lets the change pass.
    mutating func pass(_ name: ExplainedStep.Name, _ says: String, _ facts: JSONObject = [:]) {
        steps.append(ExplainedStep(name, .passed, says, facts))
    }

    /// Ends the explanation with the step that decides.
    ///
    /// `says` continues "Did not fire: ".
    mutating func fail(
        _ name: ExplainedStep.Name, _ says: String, _ facts: JSONObject = [:]
    ) {
        steps.append(ExplainedStep(name, .failed, says, facts))
        verdict = .didNotFire
        deciding = name
        sentence = "Did not fire: \(says)."
    }

    /// Ends the explanation with a step about which too little is kept.
    ///
    /// `says` continues "Cannot tell: ".
    package mutating func lack(
        _ name: ExplainedStep.Name, _ says: String, _ facts: JSONObject = [:]
    ) {
        steps.append(ExplainedStep(name, .unknown, says, facts))
        verdict = .cannotTell
        deciding = name
        sentence = "Cannot tell: \(says)."
    }
}

/// One step of the walk, with what it looked at.
package struct ExplainedStep: Sendable {
    /// The steps, in the order of the walk.
    package enum Name: String, Sendable, Hashable, CaseIterable {
        /// Whether the change got into the log and can fire anything.
        case appended
        /// Which version of the subscription was active.
        case active
        /// Whether the subscription had expired.
        case expires
        /// The operations that the subscription asks for.
        case operation
        /// The database, and its owner.
        case database
        /// The zone.
        case zone
        /// The record type.
        case recordType
        /// Whether the owner may read the record.
        case readRule
        /// The condition of the subscription.
        case predicate
        /// Whether the record matched before and after an update.
        case transition
        /// The fields that an update must change.
        case changedKeys
        /// The one change that a once subscription is claimed for.
        case once
        /// The owner's devices.
        case devices
        /// Whether a device was registered.
        case registered
        /// Whether a device made the change.
        case origin
        /// Whether a silent push is merged with another one.
        case merged
        /// The push that was composed for the device.
        case push
        /// Whether the delivery was held back for its recipient's sake.
        case held
        /// An attempt, with the gateway's answer.
        case attempt
        /// What a delivery waits for.
        case waiting
        /// How the delivery ended without success.
        case deadLetter
        /// Whether the push was fetched from the web courier.
        case fetched
        /// Whether the notification was marked read in the inbox.
        case read
        /// Whether a client reported that the push arrived.
        case delivered
        /// Whether a client reported that the push was opened.
        case opened
    }

    /// The effect of a step.
    package enum Outcome: String, Sendable, Hashable, CaseIterable {
        /// The step let the change or the push pass.
        case passed
        /// The step stopped the change or the push.
        case failed
        /// The step was looked at, but another step decides.
        case noted
        /// What the step would look at is no longer kept.
        case unknown
    }

    /// The step.
    package let name: Name
    /// The effect of the step.
    package let outcome: Outcome
    /// The step in words.
    package let says: String
    /// The facts that the step looked at.
    package let facts: JSONObject

    init(_ name: Name, _ outcome: Outcome, _ says: String, _ facts: JSONObject = [:]) {
        self.name = name
        self.outcome = outcome
        self.says = says
        self.facts = facts
    }
}

/// What a device got because a change fired a subscription, or why it got nothing.
package struct ExplainedDevice: Sendable {
    /// The state of the push.
    package enum Standing: String, Sendable, Hashable, CaseIterable {
        /// The gateway accepted the push.
        case delivered
        /// The push waits to be sent, or to be sent again.
        case waiting
        /// The delivery ended without success.
        case dead
        /// Nothing was owed to the device.
        case leftOut
        /// The delivery was held back with others, and one push told of them together.
        case folded
        /// The device was told over its connection, so nothing was pushed.
        case seen
        /// The push is owed, and the walk has not settled it yet.
        case owed
        /// What is needed to tell is no longer kept.
        case cannotTell
    }

    /// The device.
    package let id: DeviceID
    /// The serial of the device version that the change may notify, or of the last version there
    /// was.
    package let serial: UInt64
    /// The state of the push.
    package var standing = Standing.leftOut
    /// The step that decided the state.
    package var deciding = ExplainedStep.Name.registered
    /// The explanation in one sentence.
    package var sentence = ""
    /// The delivery ID, which is the `apns-id`, if anything was owed.
    package var deliveryID: DeliveryID?
    /// The steps that were looked at.
    package var steps: [ExplainedStep] = []
    /// The payload as it was composed, or would be.
    package var payload: JSONValue?

    init(_ device: PastDevice) {
        id = device.id
        serial = device.serial
    }

    mutating func note(
        _ name: ExplainedStep.Name, _ outcome: ExplainedStep.Outcome, _ says: String,
        _ facts: JSONObject = [:]
    ) {
        steps.append(ExplainedStep(name, outcome, says, facts))
    }

    /// Ends the explanation.
    ///
    /// `says` is the sentence without its full stop.
    mutating func end(
        _ standing: Standing, _ name: ExplainedStep.Name, _ says: String
    ) {
        self.standing = standing
        deciding = name
        sentence = "\(says.prefix(1).uppercased())\(says.dropFirst())."
    }
}
