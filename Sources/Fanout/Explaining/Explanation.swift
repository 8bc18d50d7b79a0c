package import RelayModel
import Storage

/// Why a change fired a subscription, or did not, and whom that reached.
package struct Explanation: Sendable {
    /// What came of it.
    package enum Verdict: String, Sendable, Hashable, CaseIterable {
        /// The change fired the subscription.
        case fired
        /// It did not.
        case didNotFire
        /// What it takes to tell is not kept.
        case cannotTell
    }

    /// The change.
    package let position: LogPosition
    /// The subscription; `nil` if the change alone was enough to answer.
    package let subscriptionID: SubscriptionID?
    /// Whose it is; `nil` if the change alone was enough to answer.
    package let owner: UserID?
    /// The version by which the change was judged, if there was one.
    package var serial: UInt64?
    /// What came of it.
    package var verdict = Verdict.didNotFire
    /// The step that decided.
    package var deciding = ExplainedStep.Name.appended
    /// All in one sentence.
    package var sentence = ""
    /// What was looked at, in the order of the walk, as far as it went.
    package var steps: [ExplainedStep] = []
    /// How many comparisons the condition fails by, if by nothing else.
    package var missedBy: Int?
    /// The owner's devices.
    package var devices: [ExplainedDevice] = []

    package init(position: LogPosition, subscriptionID: SubscriptionID?, owner: UserID?) {
        self.position = position
        self.subscriptionID = subscriptionID
        self.owner = owner
    }

    /// Whether one comparison more would have fired it.
    package var isNear: Bool { verdict == .didNotFire && missedBy == 1 }

    /// Adds a step that lets the change pass.
    mutating func pass(_ name: ExplainedStep.Name, _ says: String, _ facts: JSONObject = [:]) {
        steps.append(ExplainedStep(name, .passed, says, facts))
    }

    /// Ends it with the step that decides; `says` goes on after "Did not fire: ".
    mutating func fail(
        _ name: ExplainedStep.Name, _ says: String, _ facts: JSONObject = [:]
    ) {
        steps.append(ExplainedStep(name, .failed, says, facts))
        verdict = .didNotFire
        deciding = name
        sentence = "Did not fire: \(says)."
    }

    /// Ends it with a step of which too little is kept; `says` goes on after "Cannot tell: ".
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
        /// Whether the change got into the log, and is one that fires anything.
        case appended
        /// Which version of the subscription was active.
        case active
        /// Whether the subscription's time was over.
        case expires
        /// The operations that the subscription asks for.
        case operation
        /// The database, and whose it is.
        case database
        /// The zone.
        case zone
        /// The record type.
        case recordType
        /// Whether the owner may read the record.
        case readRule
        /// The condition.
        case predicate
        /// What an update made of the condition's answer.
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
        /// Whether a push that shows nothing is merged with another.
        case merged
        /// What the device was to get.
        case push
        /// Whether it was held back for its recipient's sake.
        case held
        /// An attempt, with what the gateway answered.
        case attempt
        /// What a delivery waits for.
        case waiting
        /// How it ended without success.
        case deadLetter
        /// Whether it was fetched.
        case fetched
        /// Whether it was marked read.
        case read
        /// Whether a client said that it came.
        case delivered
        /// Whether a client said that it was opened.
        case opened
    }

    /// What it did.
    package enum Outcome: String, Sendable, Hashable, CaseIterable {
        /// It let the change, or the push, pass.
        case passed
        /// It held it.
        case failed
        /// It was looked at, and another step decides.
        case noted
        /// What it looked at is not kept.
        case unknown
    }

    /// Which.
    package let name: Name
    /// What it did.
    package let outcome: Outcome
    /// For people.
    package let says: String
    /// What it looked at.
    package let facts: JSONObject

    init(_ name: Name, _ outcome: Outcome, _ says: String, _ facts: JSONObject = [:]) {
        self.name = name
        self.outcome = outcome
        self.says = says
        self.facts = facts
    }
}

/// What a device got of a change that fired a subscription, or why it got nothing.
package struct ExplainedDevice: Sendable {
    /// What became of it.
    package enum Standing: String, Sendable, Hashable, CaseIterable {
        /// The gateway accepted the push.
        case delivered
        /// It waits to be sent, or to be sent again.
        case waiting
        /// It ended without success.
        case dead
        /// Nothing was to be sent to it.
        case leftOut
        /// It was held back with others, and told with them in one push.
        case folded
        /// It was told over the device's connection, so that nothing was pushed.
        case seen
        /// It is owed, and the walk has not settled it yet.
        case owed
        /// What it takes to tell is not kept.
        case cannotTell
    }

    /// The device.
    package let id: DeviceID
    /// The version to which the change was told, or the last one there was.
    package let serial: UInt64
    /// What became of it.
    package var standing = Standing.leftOut
    /// The step that decided.
    package var deciding = ExplainedStep.Name.registered
    /// All in one sentence.
    package var sentence = ""
    /// The `apns-id`, if anything was owed.
    package var deliveryID: DeliveryID?
    /// What was looked at.
    package var steps: [ExplainedStep] = []
    /// The payload as it was, or would be, composed.
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

    /// Ends it; `says` is the sentence without its full stop.
    mutating func end(
        _ standing: Standing, _ name: ExplainedStep.Name, _ says: String
    ) {
        self.standing = standing
        deciding = name
        sentence = "\(says.prefix(1).uppercased())\(says.dropFirst())."
    }
}
