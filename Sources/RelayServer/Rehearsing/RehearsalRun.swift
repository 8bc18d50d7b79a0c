import Fanout
import RelayModel
import Storage

/// A rehearsal in progress.
struct RehearsalRun {
    private let service: RehearseService
    private let question: RehearseQuestion
    private let span: PastSpan
    private let allowance: QueryAllowance
    private let container: ContainerKey
    private var count: RehearsalCount
    /// The position before which it began.
    private var beginning: LogPosition

    init(
        service: RehearseService, question: RehearseQuestion, subject: RehearseService.Subject,
        devices: [PastDevice], kindness: [UInt64: DeviceKindness], span: PastSpan,
        settings: ContainerSettings, allowance: QueryAllowance
    ) throws {
        self.service = service
        self.question = question
        self.span = span
        self.allowance = allowance
        container = settings.key
        beginning = LogPosition(span.head.rawValue + 1)
        count = try RehearsalCount(
            of: subject, to: devices, span: span, settings: settings,
            shard: service.registry.shardIdentity, examples: question.examples, kindness: kindness,
            mostSteps: service.mostSteps)
    }

    private var answer: RehearseService.Answer {
        get { count.answer }
        _modify { yield &count.answer }
    }

    // MARK: Looking

    /// Looks at changes from the newest back, until a limit or the end is reached.
    mutating func find() async throws {
        let end = LogPosition(span.head.rawValue + 1)
        var before = min(question.before ?? end, end)
        if let until = question.until { before = min(before, try await place(of: until)) }
        beginning = before
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
            guard before > least else { return try await finish(atEndOf: least) }
            answer.before = before
            if answer.tally.lookedAt >= question.changes { return answer.end = .changes }
            if allowance.isOver { return cut(.time) }
            if entries <= 0 { return cut(.entries) }
            let search = search(before: before, least: least, entries: entries)
            let page = try await service.registry.loggedChanges(
                search, turn: allowance.beginTurn)
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
                by: answer.subject.subscription, insteadOf: answer.subject.former))
    }

    private mutating func cut(_ end: RehearseService.End) {
        allowance.noteCut()
        answer.end = end
    }

    /// Notes the end when everything that exists has been looked at.
    private mutating func finish(atEndOf least: LogPosition) async throws {
        answer.before = nil
        if least > span.first {
            answer.end = .since
        } else if span.first > LogPosition(1) {
            answer.end = .retention
            let moments = try await service.registry.moments(of: [span.first, span.head])
            var oldest: Duration?
            if let first = moments[span.first], let head = moments[span.head] {
                oldest = head.duration(since: first)
            }
            answer.logIsKept = service.retention.logIsKept(oldest: oldest)
        } else {
            answer.end = .log
        }
    }

    /// Returns the first position at which an entry was appended at `moment` or later.
    ///
    /// Positions have no gaps. If the clock was set back, the result is approximate.
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

    /// Judges a page of changes; returns `false` if that ended the rehearsal.
    private mutating func judge(_ page: LoggedChangePage) async throws -> Bool {
        let errors = count.errors
        var isTurnOver = allowance.beginTurn()
        for change in page.changes {
            if isTurnOver() {
                if allowance.isOver {
                    noteErrors(since: errors, page.changes)
                    cut(.time)
                    return false
                }
                // Other tasks run on the same processors.
                await Task.yield()
                try Task.checkCancellation()
                isTurnOver = allowance.beginTurn()
            }
            guard count.take(change) else { return false }
            answer.before = change.position
        }
        noteErrors(since: errors, page.changes)
        return true
    }

    private mutating func noteErrors(since before: Int, _ changes: [LoggedPastChange]) {
        count.noteErrors(since: before, among: changes, isOver: { [allowance] in allowance.isOver })
    }

    // MARK: The end

    /// Returns the position to continue from, as the answer gives it.
    ///
    /// It is rounded, so that it does not reveal the position of a hidden change. It is never after
    /// the oldest counted change, so that no change is counted twice.
    static func told(
        _ before: LogPosition, oldest: LogPosition?, beginning: LogPosition
    ) -> LogPosition {
        let (rounded, isOver) = before.rawValue.addingReportingOverflow(1023)
        let coarse = LogPosition(isOver ? .max : rounded / 1024 * 1024)
        return min(coarse, oldest ?? beginning)
    }

    /// Returns the answer with its examples.
    mutating func concluded() throws -> RehearseService.Answer {
        var answer = try count.concluded(isOver: { [allowance] in allowance.isOver })
        answer.before = answer.before.map {
            Self.told($0, oldest: answer.tally.oldest?.position, beginning: beginning)
        }
        return answer
    }
}
