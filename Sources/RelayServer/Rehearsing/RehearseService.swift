import Fanout
import Matching
import PredicateLanguage
import RegularExpressions
import RelayModel
import Storage

/// Says what a subscription would have done, had it been there: reads changes of the log, newest
/// first, and hands them to the ``Fanout/Rehearsal``.
///
/// Nothing is written and nothing is sent. Between two turns it is asked whether the caller's time
/// is over, and whether the caller has gone.
struct RehearseService: Sendable {
    let registry: any PastRegistry & SubscriptionRegistry
    let knowledge: SubscriptionKnowledge
    /// The containers' indexes, which say what predicates cost.
    let indexes: IndexDirectory
    let limits: RequestLimits
    /// How long things are kept, for those who ask for what is gone.
    let retention: Retention

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
        /// The change on which the condition took too many steps, if the owner may know of it.
        var dear: LogPosition?
        /// Changes that fire it, with the pushes.
        var examples: [RehearsalExamples.Example] = []
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
            service: self, question: question, subject: subject, devices: devices, span: span,
            settings: settings, allowance: allowance)
        try await run.find()
        return try run.concluded()
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
                subscription: saved, cost: try? cost(of: saved, .unbounded),
                warnings: known.warnings(of: saved))
        }
        let reading = SubscriptionOperationReading(
            owner: owner, limits: limits, schema: known.schema, assignedID: "draft")
        let subscription = try reading.subscription(draft)
        var subject = Subject(
            subscription: subscription,
            cost: try cost(of: subscription, limits.costs.narrowed(by: settings.costs)),
            warnings: known.warnings(of: subscription))
        if let id = question.saved {
            subject.former = try await saved(id, of: owner)
            if subject.former == nil { throw missing(id, owner) }
        } else if draft.value("subscriptionID") != nil {
            subject.former = try await saved(subscription.id, of: owner)
        }
        return subject
    }

    private func cost(
        of subscription: Subscription, _ limits: CostLimits
    ) throws -> PredicateCost {
        try PredicateScales(indexes: indexes, limits: limits)
            .weigh(subscription, path: "subscription")
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

/// One rehearsal under way.
private struct RehearsalRun {
    private let service: RehearseService
    private let question: RehearseQuestion
    private let span: PastSpan
    private let allowance: QueryAllowance
    private let container: ContainerKey
    private var rehearsal: Rehearsal
    private let shown: RehearsalExamples
    private var answer: RehearseService.Answer
    /// Changes that did not fire and are looked at closely.
    private var close: [LoggedPastChange] = []

    init(
        service: RehearseService, question: RehearseQuestion, subject: RehearseService.Subject,
        devices: [PastDevice], span: PastSpan, settings: ContainerSettings,
        allowance: QueryAllowance
    ) throws {
        self.service = service
        self.question = question
        self.span = span
        self.allowance = allowance
        container = settings.key
        rehearsal = try Rehearsal(
            of: subject.subscription, insteadOf: subject.former, to: devices)
        shown = RehearsalExamples(
            of: subject.subscription, to: devices, span: span, settings: settings,
            shard: service.registry.shardIdentity
        ) { predicate, fields, moment in
            try? PreparedPredicate(predicate).trace(onValue: .map(fields), now: moment)
        }
        answer = RehearseService.Answer(
            subject: subject, devices: devices.count,
            tally: RehearsalTally(
                of: subject.subscription, insteadOf: subject.former,
                remembering: question.examples))
    }

    // MARK: Looking

    /// Looks at changes from the newest back until something ends it.
    mutating func find() async throws {
        let end = LogPosition(span.head.rawValue + 1)
        var before = min(question.before ?? end, end)
        if let until = question.until { before = min(before, try await place(of: until)) }
        var least = max(span.first, LogPosition(1))
        if let since = question.since { least = max(least, try await place(of: since)) }
        if let after = question.after, after < end {
            least = max(least, LogPosition(after.rawValue + 1))
        } else if question.after != nil {
            least = end
        }
        var entries = RehearseService.lookedThrough
        while true {
            try Task.checkCancellation()
            guard before > least else { return finish(atEndOf: least) }
            answer.before = before
            if answer.tally.lookedAt >= question.changes { return answer.end = .changes }
            if allowance.isOver { return cut(.time) }
            if entries <= 0 { return cut(.entries) }
            let search = search(before: before, least: least, entries: entries)
            let page = try await service.registry.loggedChanges(search)
            guard try await judge(page) else { return }
            entries -= Int(before.rawValue - page.before.rawValue)
            before = page.before
        }
    }

    private func search(before: LogPosition, least: LogPosition, entries: Int) -> PastSearch {
        let left = Int(clamping: before.rawValue - least.rawValue)
        return PastSearch(
            of: container, before: before,
            entries: min(left, entries, RehearseService.pageEntries),
            limit: min(
                RehearseService.pageChanges, question.changes - answer.tally.lookedAt),
            recordType: Rehearsal.recordTypeRead(
                by: rehearsal.subscription, insteadOf: answer.subject.former))
    }

    private mutating func cut(_ end: RehearseService.End) {
        allowance.noteCut()
        answer.end = end
    }

    /// Everything that there is was looked at.
    private mutating func finish(atEndOf least: LogPosition) {
        answer.before = nil
        if least > span.first {
            answer.end = .since
        } else if span.first > LogPosition(1) {
            answer.end = .retention
            answer.logIsKept = service.retention.logIsKept
        } else {
            answer.end = .log
        }
    }

    /// The first entry of the log that was appended at `moment` or later.
    ///
    /// Positions have no gaps, and where the clock was set back it is about right.
    private func place(of moment: Timestamp) async throws -> LogPosition {
        var low = span.first.rawValue
        var high = span.head.rawValue + 1
        while low < high {
            let middle = low + (high - low) / 2
            let position = LogPosition(middle)
            let at = try await service.registry.moments(of: [position])[position]
            if let at, at >= moment { high = middle } else { low = middle + 1 }
        }
        return LogPosition(low)
    }

    // MARK: Judging

    /// Judges a page; `false` if that ended the rehearsal.
    private mutating func judge(_ page: LoggedChangePage) async throws -> Bool {
        let errors = rehearsal.errors
        var isTurnOver = allowance.beginTurn()
        for change in page.changes {
            if isTurnOver() {
                if allowance.isOver {
                    noteErrors(since: errors, page)
                    cut(.time)
                    return false
                }
                // Others run on the same processors.
                await Task.yield()
                try Task.checkCancellation()
                isTurnOver = allowance.beginTurn()
            }
            guard take(change) else { return false }
            answer.before = change.position
        }
        noteErrors(since: errors, page)
        return true
    }

    private mutating func take(_ change: LoggedPastChange) -> Bool {
        do {
            guard let verdict = try rehearsal.judge(change) else { return true }
            answer.tally.add(change, verdict)
            if !verdict.fires, close.count < RehearseService.mostClose { close.append(change) }
            return true
        } catch is DearChange {
            answer.end = .steps
            if let read = shown.past(change)?.change, rehearsal.mayTell(of: read) {
                answer.dear = change.position
            }
            return false
        } catch {
            // What cannot be read was set aside by the walk, or will be.
            return true
        }
    }

    /// Looks for a change on which the condition had an error, once one is known to be there.
    private mutating func noteErrors(since before: Int, _ page: LoggedChangePage) {
        answer.errors = rehearsal.errors
        guard answer.errors > before, answer.errorExample == nil else { return }
        for change in page.changes where !allowance.isOver {
            guard let says = shown.error(on: change), let past = shown.past(change),
                let read = past.change, rehearsal.mayTell(of: read)
            else { continue }
            answer.errorExample = (past, says)
            return
        }
    }

    // MARK: The end

    /// The answer, with its examples.
    mutating func concluded() throws -> RehearseService.Answer {
        for change in close where !allowance.isOver {
            try Task.checkCancellation()
            guard let explanation = shown.explanation(of: change) else { continue }
            answer.closeCount += 1
            guard explanation.isNear else { continue }
            answer.nearCount += 1
            if answer.near.count < question.examples, let past = shown.past(change) {
                answer.near.append((past, explanation.sentence))
            }
        }
        answer.examples = answer.tally.firedExamples.compactMap(shown.example)
        guard answer.subject.former != nil else { return answer }
        let difference = answer.tally.difference
        answer.added = difference.addedExamples.compactMap(shown.past)
        answer.removed = difference.removedExamples.compactMap(shown.past)
        return answer
    }
}

private extension CostLimits {
    /// Limits that refuse nothing: what is saved is saved.
    static var unbounded: CostLimits {
        var limits = CostLimits()
        limits.perPredicate = .max
        limits.perUser = .max
        limits.perRecordType = .max
        return limits
    }
}
