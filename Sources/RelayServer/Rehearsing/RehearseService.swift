import Fanout
import Matching
import PredicateLanguage
import RelayModel
import Storage

/// Says what a subscription would have done, had it been there: reads changes of the log, newest
/// first, and hands them to the ``Fanout/Rehearsal``.
///
/// Nothing is written and nothing is sent. Between two turns it is asked whether the caller's time
/// is over, and whether the caller has gone.
struct RehearseService: Sendable {
    let registry: any PastRegistry & SubscriptionRegistry & DeviceRegistry
    let knowledge: SubscriptionKnowledge
    /// The containers' indexes, which say what predicates cost.
    let indexes: IndexDirectory
    let limits: RequestLimits
    /// How long things are kept, for those who ask for what is gone.
    let retention: Retention
    /// Reads conditions that take long.
    let bodies: LongBodies
    /// Steps that a condition may take on one change, as those of saved ones.
    var mostSteps = Limits.maximumStepsPerChange

    /// Entries of the log that one rehearsal looks through, whosever they are.
    static let lookedThrough = 1_000_000
    /// Entries that are looked through in one read.
    static let pageEntries = 20_000
    /// Changes that one read brings.
    static let pageChanges = 1000
    /// Changes that did not fire, the newest, of which it is said how near they were: each of them
    /// is judged slowly.
    static let mostClose = 100

    /// Why no more changes were looked at.
    enum End: String, Sendable, Hashable, CaseIterable {
        /// As many as were asked for.
        case changes
        /// All of the span that was asked for.
        case since
        /// All that there ever were.
        case log
        /// All that are kept.
        case retention
        /// As many entries of the log as one rehearsal looks through.
        case entries
        /// The time was over.
        case time
        /// The condition took too many steps.
        case steps
        /// All of a file, which no relay has.
        case file
    }

    /// A subscription, and what it is compared with.
    struct Subject: Sendable {
        let subscription: Subscription
        /// The saved one of the same name, or the one that was named.
        var former: Subscription?
        let cost: PredicateCost?
        var warnings: [PredicateWarning] = []
    }

    /// What came of it.
    struct Answer: Sendable {
        let subject: Subject
        let devices: Int
        var tally: RehearsalTally
        /// Why it ends where it ends.
        var end = End.log
        /// How long the log is kept, where that is why.
        var logIsKept = ""
        /// Where one would go on; `nil` where nothing is left.
        var before: LogPosition?
        /// Evaluations that had an error.
        var errors = 0
        /// One of them.
        var errorExample: (change: PastChange, says: String)?
        /// Those that did not fire by one comparison.
        var near: [(change: PastChange, says: String)] = []
        /// How many were near, of so many that were looked at closely.
        var nearCount = 0
        var closeCount = 0
        /// The change on which the condition took too many steps.
        var dear: LogPosition?
        /// Changes that fire it, with the pushes.
        var examples: [RehearsalExamples.Example] = []
        /// What is left of the pushes by what is asked for, to be told less.
        var left: HeldRehearsal.Outcome?
        /// Changes that a change of the subscription adds and removes.
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

    /// Rehearses by changes that are sent along, in the preset `belfry`'s own words.
    ///
    /// The schema, the devices and the saved subscriptions are the container's. `read` says what
    /// the first line asks for, and as whom.
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
                "line 1: say what is to be rehearsed, as {\"subscription\": …}; changes follow")
        }
        return try await begun.concluded()
    }

    /// Lines without anything before the first that says something.
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

    /// Devices of a user whose wishes are looked up.
    private static let mostDevices = 1000

    /// What the user's devices ask for, by serial.
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

    /// Does what a condition takes: of a long one by turns, on the thread that gives way.
    private func read<Value: Sendable>(
        _ condition: JSONValue, for owner: SubscriptionOwner, _ work: @Sendable () throws -> Value
    ) async throws -> Value {
        guard condition.isLonger(than: LongBodies.leastOfConditions) else { return try work() }
        return try await bodies.apart(of: owner.container, by: .user(owner.user), work)
    }

    /// The condition of a subscription, by which it is known whether that is long.
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

    /// The subscription as it is saved, also if it was disabled.
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
    /// Limits that refuse nothing: what is saved is saved.
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
