import Fanout
import Matching
import PredicateLanguage
import RelayModel
import Storage

/// Computes what a subscription would have done: reads changes of the log, newest first, and passes
/// them to the ``Fanout/Rehearsal``.
///
/// Nothing is written or sent. After each turn the service checks whether the caller's time is
/// over, and whether the caller has gone.
struct RehearseService: Sendable {
    let registry: any PastRegistry & SubscriptionRegistry & DeviceRegistry
    let knowledge: SubscriptionKnowledge
    /// The containers' indexes, which are needed for the costs of conditions.
    let indexes: IndexDirectory
    let limits: RequestLimits
    /// How long the log is kept, for answers about what is gone.
    let retention: Retention
    /// The place where long conditions are parsed.
    let bodies: LongBodies
    /// The maximum number of steps for one change, as for saved conditions.
    var mostSteps = Limits.maximumStepsPerChange

    /// The entries of the log that one rehearsal reads, of all containers.
    static let lookedThrough = 1_000_000
    /// The entries of the log that one read passes.
    static let pageEntries = 20_000
    /// The changes that one read returns.
    static let pageChanges = 1000
    /// The number of changes that did not fire, the newest, that are examined for near misses,
    /// because each examination is slow.
    static let mostClose = 100

    /// The reason for which no more changes were looked at.
    enum End: String, Sendable, Hashable, CaseIterable {
        /// The requested number of changes was reached.
        case changes
        /// The requested span was covered.
        case since
        /// The whole log was covered.
        case log
        /// All entries that are still kept were covered.
        case retention
        /// The limit on entries was reached.
        case entries
        /// The time was over.
        case time
        /// The condition took too many steps.
        case steps
        /// The whole file was covered; no answer of a relay ends like this.
        case file
    }

    /// The subscription, and what it is compared with.
    struct Subject: Sendable {
        let subscription: Subscription
        /// The saved subscription of the same name, or the one that was named.
        var former: Subscription?
        let cost: PredicateCost?
        var warnings: [PredicateWarning] = []
    }

    /// The result of a rehearsal.
    struct Answer: Sendable {
        let subject: Subject
        let devices: Int
        var tally: RehearsalTally
        /// Why it ended where it did.
        var end = End.log
        /// How long the log is kept, if that is the reason.
        var logIsKept = ""
        /// The position to continue from; `nil` if nothing is left.
        var before: LogPosition?
        /// The number of evaluations with an error.
        var errors = 0
        /// An example of such a change.
        var errorExample: (change: PastChange, says: String)?
        /// Examples of changes that did not fire because of one comparison.
        var near: [(change: PastChange, says: String)] = []
        /// The number of near misses, among `closeCount` changes that were examined.
        var nearCount = 0
        var closeCount = 0
        /// The change for which the condition took too many steps.
        var dear: LogPosition?
        /// Examples of changes that fire it, with their pushes.
        var examples: [RehearsalExamples.Example] = []
        /// The pushes that remain under the holds that are asked for.
        var left: HeldRehearsal.Outcome?
        /// Examples of changes that an edit of the subscription would add and remove.
        var added: [PastChange] = []
        var removed: [PastChange] = []
    }

    /// Rehearses for the user of `owner`.
    func answer(
        _ question: RehearseQuestion, of settings: ContainerSettings, for owner: SubscriptionOwner,
        within allowance: QueryAllowance, at now: Timestamp
    ) async throws -> Answer {
        let subject = try await subject(question, settings, owner, at: now)
        let span = try await registry.pastSpan()
        let devices = try await registry.pastDevices(
            of: owner.user, in: owner.container, .hearing(LogPosition(span.head.rawValue + 1)))
        var run = try RehearsalRun(
            service: self, question: question, subject: subject, devices: devices,
            kindness: try await kindness(of: owner), span: span, settings: settings,
            allowance: allowance)
        try await run.find()
        return try run.concluded()
    }

    /// Rehearses with uploaded changes, in the format of the preset `belfry`.
    ///
    /// The schema, the devices and the saved subscriptions are the container's. `read` parses the
    /// first line, and returns the request and the user.
    func answer(
        by lines: UploadedLines, of settings: ContainerSettings,
        within allowance: QueryAllowance, at now: Timestamp,
        _ read: (ArraySlice<UInt8>) throws -> (RehearseQuestion, SubscriptionOwner)
    ) async throws -> Answer {
        var begun: UploadRehearsal?
        try await lines.read { line, number in
            guard begun == nil else {
                return try await begun?.take(Array(line), number) ?? false
            }
            guard !line.isEmpty else { return number < Self.mostBlankLines }
            let (question, owner) = try read(line)
            begun = UploadRehearsal(
                try await rehearsal(question, settings, owner, at: now), within: allowance)
            return true
        }
        guard var begun else {
            throw APIError(
                .badRequest,
                "line 1: must describe the rehearsal, such as {\"subscription\": …}; the changes "
                    + "follow in the next lines")
        }
        return try await begun.concluded()
    }

    /// The maximum number of empty lines before the first one with content.
    private static let mostBlankLines = 1000

    private func rehearsal(
        _ question: RehearseQuestion, _ settings: ContainerSettings, _ owner: SubscriptionOwner,
        at now: Timestamp
    ) async throws -> FileRehearsal {
        let span = try await registry.pastSpan()
        return try FileRehearsal(
            of: try await subject(question, settings, owner, at: now),
            to: try await registry.pastDevices(
                of: owner.user, in: owner.container,
                .hearing(LogPosition(span.head.rawValue + 1))),
            settings: settings, examples: question.examples,
            kindness: try await kindness(of: owner), at: now, mostSteps: mostSteps)
    }

    /// The maximum number of devices whose holds are looked up.
    private static let mostDevices = 1000

    /// Returns the holds that the user's devices ask for, by serial.
    private func kindness(
        of owner: SubscriptionOwner
    ) async throws -> [UInt64: DeviceKindness] {
        let devices = try await registry.devices(
            of: owner.container, owner: owner.user, limit: Self.mostDevices)
        return Dictionary(
            uniqueKeysWithValues: devices.map { ($0.serial, $0.device.kindness) })
    }

    // MARK: The subscription

    private func subject(
        _ question: RehearseQuestion, _ settings: ContainerSettings, _ owner: SubscriptionOwner,
        at now: Timestamp
    ) async throws -> Subject {
        let known = try await knowledge.known(of: owner.container, for: .users, at: now)
        guard let draft = question.draft else {
            guard let id = question.saved, let saved = try await saved(id, of: owner) else {
                throw missing(question.saved, owner)
            }
            return Subject(
                subscription: saved, cost: try? await cost(of: saved, for: owner, .unbounded),
                warnings: try await read(Self.condition(of: saved), for: owner) {
                    known.warnings(of: saved)
                })
        }
        let reading = SubscriptionOperationReading(
            owner: owner, limits: limits, schema: known.schema, assignedID: "draft",
            lifetime: settings.expirationSeconds)
        let subscription = try await read(.object(draft.object), for: owner) {
            try reading.subscription(draft, savedAt: now)
        }
        var subject = Subject(
            subscription: subscription,
            cost: try await cost(
                of: subscription, for: owner, limits.costs.narrowed(by: settings.costs)),
            warnings: try await read(Self.condition(of: subscription), for: owner) {
                known.warnings(of: subscription)
            })
        if let id = question.saved {
            subject.former = try await saved(id, of: owner)
            if subject.former == nil { throw missing(id, owner) }
        } else if draft.value("subscriptionID") != nil {
            subject.former = try await saved(subscription.id, of: owner)
        }
        return subject
    }

    /// Does the work on a condition; for a long one, by turns on a thread that gives way.
    private func read<Value: Sendable>(
        _ condition: JSONValue, for owner: SubscriptionOwner, _ work: @Sendable () throws -> Value
    ) async throws -> Value {
        guard condition.isLonger(than: LongBodies.leastOfConditions) else { return try work() }
        return try await bodies.apart(of: owner.container, by: .user(owner.user), work)
    }

    /// Returns the condition of a subscription, to tell whether it is long.
    private static func condition(of subscription: Subscription) -> JSONValue {
        guard case .query(let query, _) = subscription.scope else { return .null }
        return .string(query.canonical)
    }

    private func cost(
        of subscription: Subscription, for owner: SubscriptionOwner, _ limits: CostLimits
    ) async throws -> PredicateCost {
        let scales = PredicateScales(indexes: indexes, limits: limits)
        let weigh = { @Sendable () throws -> PredicateCost in
            try scales.weigh(subscription, path: "subscription")
        }
        guard Self.condition(of: subscription).isLonger(than: LongBodies.leastOfConditions) else {
            return try await indexes.whenFree(subscription.container) { try weigh() }
        }
        return try await bodies.apart(of: owner.container, by: .user(owner.user), weigh)
    }

    /// Returns the subscription as it is saved, even if it has been disabled.
    private func saved(
        _ id: SubscriptionID, of owner: SubscriptionOwner
    ) async throws -> Subscription? {
        if let version = try await registry.subscription(id, of: owner) {
            return version.subscription
        }
        return try await registry.disabledSubscriptions(of: owner)
            .first { $0.version.subscription.id == id }?.version.subscription
    }

    private func missing(_ id: SubscriptionID?, _ owner: SubscriptionOwner) -> APIError {
        APIError(
            .notFound,
            "subscriptionID: there is no subscription \"\(id?.rawValue ?? "")\" of "
                + "\"\(owner.user)\" in the \(owner.database.rawValue) database")
    }
}

private extension CostLimits {
    /// Limits that refuse nothing, because the subscription is saved already.
    static var unbounded: CostLimits {
        var limits = CostLimits()
        limits.perPredicate = .max
        limits.perUser = .max
        limits.perRecordType = .max
        limits.userMegabytes = 953_674
        limits.containerMegabytes = 953_674
        return limits
    }
}
