import Matching
import PredicateLanguage
package import RelayModel
package import Storage

/// Explains why one change fired a subscription or did not, as of the change's position in the log.
///
/// The explainer judges with the walk's own code: the fan-out, and the state of a container with
/// only the subscriptions and devices in question. The steps describe what that code looked at.
/// Pure.
package struct Explainer: Sendable {
    /// The change in question.
    let past: PastChange
    /// How far back the store keeps each kind of row.
    let span: PastSpan
    private let settings: ContainerSettings
    private let identity: DeliveryIdentity
    private let trace: MissFinder.Trace
    /// The times of positions that are named in sentences.
    let moments: [LogPosition: Timestamp]
    /// Whether the operator asks.
    ///
    /// Only the operator may know of sources and of other users' subscriptions.
    package var isForOperator = false
    /// A phrase that says how long receipts are kept, which is appended to a clause.
    package var receiptsAreKept = ""

    /// Creates an explainer for one change.
    ///
    /// `settings` are the container's current settings. The parts of a push that depend on settings
    /// are composed with them.
    package init(
        of past: PastChange, span: PastSpan, settings: ContainerSettings, shard: UUIDBytes,
        moments: [LogPosition: Timestamp] = [:], trace: @escaping MissFinder.Trace
    ) {
        self.past = past
        self.span = span
        self.settings = settings
        self.moments = moments
        identity = DeliveryIdentity(store: shard)
        self.trace = trace
    }

    /// A question about one subscription.
    package struct Question: Sendable {
        /// The subscription.
        package var id: SubscriptionID
        /// The owner of the subscription.
        package var owner: UserID
        /// All versions of the subscription that are kept, newest first.
        package var versions: [PastSubscription]
        /// Earlier versions of the owner's other subscriptions that may have notified the same
        /// devices.
        package var others: [PastSubscription] = []
        /// The owner's devices that the change may notify.
        package var devices: [PastDevice] = []
        /// Why and where the subscription was disabled, if it is.
        package var disabled: DisabledSubscription?

        package init(id: SubscriptionID, owner: UserID, versions: [PastSubscription]) {
            self.id = id
            self.owner = owner
            self.versions = versions
        }
    }

    /// The result of judging.
    package struct Judged: Sendable {
        /// The explanation, up to the point where deliveries begin.
        package var explanation: Explanation
        /// The owed deliveries, by the serial of the device.
        package var owed: [UInt64: OwedDelivery] = [:]
        /// The parts that were left out of each push because of its size, by the serial of the
        /// device.
        var pruned: [UInt64: [String]] = [:]
        /// The version of the subscription by which the change was judged.
        package var subscription: PastSubscription?
    }

    /// Judges the change for one subscription.
    package func judge(_ question: Question) -> Judged {
        var judged = Judged(
            explanation: Explanation(
                position: past.position, subscriptionID: question.id, owner: question.owner))
        guard let change = explainAppended(&judged.explanation) else { return judged }
        guard let subject = question.versions.first(where: { $0.judges(past.position) }) else {
            explainInactive(question, &judged.explanation)
            return judged
        }
        judged.subscription = subject
        judged.explanation.serial = subject.version.serial
        judged.explanation.pass(
            .active, "the subscription had been active since \(place(subject.version.activation))",
            activeFacts(subject))
        guard explainExpiry(subject.version.subscription, &judged.explanation) else {
            return judged
        }
        var walk = judgedByWalk(change, question, subject)
        explainSteps(change, subject, walk, &judged.explanation)
        guard judged.explanation.verdict == .fired else { return judged }
        var pruned: [UInt64: [String]] = [:]
        for owed in walk.fanout?.takeDeliveries() ?? []
        where owed.subscriptionSerial == subject.version.serial {
            judged.owed[owed.deviceSerial] = owed
            pruned[owed.deviceSerial] = leftOut(of: owed, by: subject.version.subscription, change)
        }
        judged.pruned = pruned
        return judged
    }

    // MARK: The walk

    /// The judgement of the walk's own code.
    struct Walk {
        /// Whether the subscription fires, regardless of once claims.
        var fires = false
        /// Why the subscription could not be judged.
        var refusal: String?
        /// The fan-out, if the subscription fires.
        var fanout: ChangeFanout?
    }

    private func judgedByWalk(
        _ change: RecordChange, _ question: Question, _ subject: PastSubscription
    ) -> Walk {
        var walk = Walk()
        var state = ShardState(indexSeed: 0)
        do {
            try state.insert(subject.version)
        } catch {
            walk.refusal = "its condition cannot be read: \(error)"
            return walk
        }
        var claims = [subject.version.serial: subject.claimed]
        for other in question.others where other.version.serial < subject.version.serial {
            guard (try? state.insert(other.version)) != nil else { continue }
            claims[other.version.serial] = other.claimed
        }
        for device in question.devices { state.insert(device.version(in: past.container)) }
        let fired: [UInt64]
        do {
            fired = try state.firedSerials(
                by: change, appendedAt: past.appendedAt, isStale: past.isStale,
                in: past.container)
        } catch {
            walk.refusal = "evaluating its condition takes too many steps"
            return walk
        }
        walk.fires = fired.contains(subject.version.serial)
        guard walk.fires else { return walk }
        let once = Set(state.onceSerials(among: fired, of: past.container))
        let left = fired.filter { serial in
            !once.contains(serial) || claims[serial] == past.position
        }
        var fanout = ChangeFanout(
            of: change, at: past.position, appendedAt: past.appendedAt, identity: identity,
            settings: settings, firstOffset: 0)
        state.expand(left[...], in: past.container, into: &fanout)
        walk.fanout = fanout
        return walk
    }

    // MARK: The steps up to the condition

    private func explainSteps(
        _ change: RecordChange, _ subject: PastSubscription, _ walk: Walk,
        _ explanation: inout Explanation
    ) {
        let subscription = subject.version.subscription
        if let refusal = walk.refusal {
            explanation.fail(.predicate, refusal)
            return
        }
        guard
            let indexed = try? IndexedSubscription(subscription, serial: subject.version.serial),
            explainPlace(change, subscription, indexed, &explanation),
            explainReadRule(change, subscription, &explanation),
            ConditionExplainer(
                change: change, subscription: subscription, indexed: indexed,
                moment: change.occurredAt ?? past.appendedAt, trace: trace
            ).explain(&explanation)
        else { return }
        guard walk.fires else {
            // The steps only describe the walk. If they disagree with it, the walk is right.
            explanation.fail(.predicate, "the relay's own matching says that it does not match")
            return
        }
        explainOnce(subject, &explanation)
    }

    private func explainOnce(
        _ subject: PastSubscription, _ explanation: inout Explanation
    ) {
        if subject.version.subscription.firesOnce {
            switch subject.claimed {
            case past.position?:
                explanation.pass(.once, "it fires only once, and it fired by this change")
            case let claim?:
                explanation.fail(
                    .once, "it fires only once, and it fired by the change at position \(claim)",
                    ["claimedBy": .string(claim.description)])
                return
            case nil where past.position > span.settled:
                explanation.lack(
                    .once, "it fires only once, and the relay has not processed this change yet")
                return
            case nil:
                explanation.fail(
                    .once, "it fires only once, and it ended before it could fire by this change")
                return
            }
        }
        explanation.verdict = .fired
    }

    private func explainReadRule(
        _ change: RecordChange, _ subscription: Subscription, _ explanation: inout Explanation
    ) -> Bool {
        guard change.mayTell(subscription) else {
            explanation.fail(
                .readRule,
                change.mayRead(subscription.owner)
                    ? "\(subscription.owner) got permission to read the record only by this "
                        + "change, and the subscription also looks at the record before the change"
                    : "\(subscription.owner) may not read the record after this change")
            return false
        }
        explanation.pass(
            .readRule,
            change.readers == nil
                ? "the change does not restrict who may read the record"
                : "\(subscription.owner) may read the record")
        return true
    }

    private func explainPlace(
        _ change: RecordChange, _ subscription: Subscription, _ indexed: IndexedSubscription,
        _ explanation: inout Explanation
    ) -> Bool {
        let misses = Set(indexed.misses(of: change))
        let operations = subscription.firesOn.operations
        let found = change.operation == .update ? "an update" : "a \(change.operation.noun)"
        let steps: [(ExplainedStep.Name, Bool, String, JSONObject)] = [
            (
                .operation, misses.contains(.operation),
                "it was \(found), and the subscription asks for "
                    + operations.map { "\($0.noun)s" }.andList,
                [
                    "operation": .string(change.operation.rawValue),
                    "firesOn": .array(operations.map { .string($0.rawValue) }),
                ]
            ),
            (
                .database, misses.contains(.database) || misses.contains(.owner),
                databaseText(change, subscription),
                ["database": .string(change.database.rawValue)]
            ),
            (
                .zone, misses.contains(.zone),
                "it was in the zone \(change.recordID.zoneID.words), and the subscription asks "
                    + "for \(subscription.zoneID?.words ?? "every zone")",
                ["zoneID": .string(change.recordID.zoneID.zoneName)]
            ),
            (
                .recordType, misses.contains(.recordType),
                "it was of the record type \(change.recordType), and the subscription asks for "
                    + (subscription.recordType?.rawValue ?? "every type"),
                ["recordType": .string(change.recordType.rawValue)]
            ),
        ]
        for (name, isMissed, says, facts) in steps {
            if isMissed {
                explanation.fail(name, says, facts)
                return false
            }
            explanation.pass(name, says, facts)
        }
        return true
    }

    private func databaseText(_ change: RecordChange, _ subscription: Subscription) -> String {
        if change.database == subscription.database, change.database != .public,
            change.owner != subscription.owner
        {
            return change.owner == nil
                ? "the change does not say in whose \(change.database.rawValue) database the "
                    + "record is"
                : "it was in another user's \(change.database.rawValue) database"
        }
        return "it was in the \(change.database.rawValue) database, and the subscription asks for "
            + "the \(subscription.database.rawValue) one"
    }

    // MARK: What was composed

    /// Returns the paths that the complete notification has and the push does not.
    private func leftOut(
        of owed: OwedDelivery, by subscription: Subscription, _ change: RecordChange
    ) -> [String] {
        let composer = NotificationComposer(
            settings: settings, change: change, position: past.position,
            appendedAt: past.appendedAt)
        let whole = composer.inboxPayload(
            by: subscription,
            notificationID: identity.notificationID(
                position: past.position, owner: subscription.owner))
        guard let whole = try? JSONValue(stored: whole),
            let sent = try? JSONValue(stored: owed.delivery.notification.payload)
        else { return [] }
        return Self.missing(of: whole, in: sent, at: "")
    }

    private static func missing(
        of whole: JSONValue, in part: JSONValue, at path: String
    ) -> [String] {
        guard case .object(let members) = whole, case .object(let left) = part else {
            // An alert that consists of a text alone is written as that text.
            return []
        }
        return members.members.flatMap { member -> [String] in
            let name = path.isEmpty ? member.name : "\(path).\(member.name)"
            guard let value = left[member.name] else { return [name] }
            return missing(of: member.value, in: value, at: name)
        }
    }
}

extension PastDevice {
    /// Returns the version as the fan-out needs it.
    ///
    /// The token is a placeholder, because no payload contains it.
    func version(in container: ContainerKey) -> DeviceVersion {
        guard let token = DeviceToken(rawValue: String(repeating: "0", count: 64)) else {
            preconditionFailure("zeros are hexadecimal digits")
        }
        return DeviceVersion(
            serial: serial,
            device: Device(
                id: id, container: container, owner: owner, gateway: gateway,
                gatewayEnvironment: gatewayEnvironment, token: token, topic: topic),
            registeredAt: registeredAt, activation: activation)
    }
}

extension ZoneID {
    /// The name of the zone, with its owner if it has one: two zones of one name may differ only in
    /// their owners.
    var words: String { ownerRecordName.map { "\(zoneName) of \($0)" } ?? zoneName }
}
