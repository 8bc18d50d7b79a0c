package import RelayModel
import Synchronization

/// The index of the saved subscriptions of one container and environment.
///
/// For every change it finds the subscriptions that the change fires, exactly those that the
/// reference evaluator would (docs/firing-rules.md). The cost grows with the number of matches.
///
/// - Creations and updates are judged on the after image, deletions on the before image. Without
///   that image, only subscriptions whose condition uses no fields fire.
/// - A predicate that has an evaluation error does not fire; the error is counted in ``errors``.
/// - A comparison on a field that a partial image lacks counts as failed, and so does its opposite
///   under NOT. So such a predicate fires only if it would for any value of the field.
/// - Changes in private and shared databases are visible to their owner only.
///
/// Any number of threads may match while others insert and remove; a match sees an edit completely
/// or not at all. A match holds one of a few readers, and an edit holds all of them. So a match
/// waits for at most one edit (about a microsecond), and an edit waits for the matches that are
/// running. See `docs/decisions/0004-matching-structure.md`.
package final class SubscriptionIndex: Sendable {
    private let readers: [IndexReader]
    private let turn = Atomic<Int>(0)
    private let content: IndexContent

    /// The number of readers that can be in use at the same time; a power of two.
    private static let readerCount = 4

    /// Creates an empty index.
    ///
    /// - Parameter seed: The secret seed of the hashes, which the caller draws at random, so that
    ///   no client can save keys that collide.
    package convenience init(seed: UInt64) {
        self.init(seed: seed, threadTime: ThreadTime.nanoseconds)
    }

    /// Creates an empty index with another measure of a thread's working time, in nanoseconds.
    init(seed: UInt64, threadTime: @escaping @Sendable () -> UInt64) {
        content = IndexContent(seed: seed)
        readers = (0..<Self.readerCount).map { _ in IndexReader(threadTime: threadTime) }
    }

    // MARK: Writing

    /// Files a subscription, replacing one with the same serial.
    ///
    /// - Returns: Its expected cost.
    @discardableResult
    package func insert(_ subscription: IndexedSubscription) -> MatchingCost {
        writing { $0.insert(subscription) }
    }

    /// Removes a subscription, and returns whether it was filed.
    @discardableResult
    package func remove(serial: UInt64) -> Bool {
        writing { $0.remove(serial: serial) }
    }

    /// Files many subscriptions as one edit.
    package func insert(contentsOf subscriptions: some Sequence<IndexedSubscription>) {
        writing { content in
            for subscription in subscriptions { content.insert(subscription) }
        }
    }

    /// Returns the cost that a subscription would have, without filing it.
    ///
    /// The cost is that of replacing the subscription with the serial `former`, if it is filed.
    package func cost(
        of subscription: IndexedSubscription, insteadOf former: UInt64? = nil
    ) -> MatchingCost {
        writing { $0.cost(of: subscription, insteadOf: former) }
    }

    /// Returns subscriptions that would be filed under better keys or weighed otherwise now, by
    /// what changes have shown since they were filed.
    ///
    /// The caller, which has their predicates, inserts them again. Each is returned once, at most
    /// `most` in one call. A key is inspected when it turns out to be hit by one in fifty changes
    /// of its record type, and again whenever the number of its postings has doubled.
    package func takeMisfiled(most: Int) -> [UInt64] {
        writing { $0.takeMisfiled(most: most) }
    }

    // MARK: Matching

    /// Returns the serials of the subscriptions that a change fires, in ascending order.
    ///
    /// If `now` is `nil`, the function `now()` in predicates is the moment of the change.
    package func matches(for change: RecordChange, now: Timestamp? = nil) -> [UInt64] {
        var serials: [UInt64] = []
        matches(for: change, now: now, into: &serials)
        return serials
    }

    /// Finds the subscriptions that a change fires, and writes their serials into an array whose
    /// memory is reused.
    ///
    /// - Returns: The costs, if the change took more than `mostSteps`; `serials` is empty then.
    @discardableResult
    package func matches(
        for change: RecordChange, now: Timestamp? = nil,
        mostSteps: Int = Limits.maximumStepsPerChange, into serials: inout [UInt64],
        among mayJudge: ((UInt64) -> Bool)? = nil
    ) -> DearChange? {
        var erring: [UInt64] = []
        return matches(
            for: change, now: now, mostSteps: mostSteps, into: &serials, erring: &erring,
            among: mayJudge)
    }

    /// Finds the subscriptions that a change fires, as the other methods do.
    ///
    /// It also adds the serials of subscriptions whose predicates had an evaluation error to
    /// `erring`, at most ten thousand, in no particular order.
    ///
    /// Once that has taken a tenth of a millisecond, a condition is only evaluated, and its steps
    /// only counted, if `mayJudge` holds for one of its subscriptions. Until then nobody is asked:
    /// most changes take less, and a condition may be that of a million users. The answer may
    /// contain others.
    ///
    /// `mayJudge` is called while a reader of the index is held. So it looks up values, and must
    /// not take a lock or use this index.
    package func matches(
        for change: RecordChange, now: Timestamp?, mostSteps: Int, into serials: inout [UInt64],
        erring: inout [UInt64], among mayJudge: ((UInt64) -> Bool)? = nil
    ) -> DearChange? {
        reading { content, reader -> DearChange? in
            reader.change.encoder.mostSlowBytes = Self.slowBytes(within: mostSteps)
            reader.change.mostWalkedSteps = mostSteps
            content.decode(change, now: now, into: reader.change)
            if let dear = Self.givenUp(reader.change, content, after: mostSteps, &serials) {
                return dear
            }
            reader.scratch.mostSteps =
                mayJudge == nil ? mostSteps : min(mostSteps, Self.stepsForAll)
            var dear = content.match(reader.change, &reader.scratch, into: &serials)
            if dear != nil, mayJudge != nil {
                reader.scratch.mayJudge = mayJudge
                reader.scratch.mostSteps = mostSteps
                dear = content.match(reader.change, &reader.scratch, into: &serials)
                reader.scratch.mayJudge = nil
            }
            if !reader.scratch.erring.isEmpty { erring += reader.scratch.erring }
            content.sample(reader.change, &reader.samples)
            return dear
        }
    }

    /// Decodes a change for ``matches(for:into:)-(DecodedChange,_)``.
    package func decode(_ change: RecordChange, into decoded: DecodedChange) {
        reading { content, _ in content.decode(change, now: nil, into: decoded) }
    }

    /// Writes the serials of the subscriptions that a decoded change fires into `serials`, in
    /// ascending order.
    ///
    /// The change is decoded again if the index has since learned a new field or kind of key.
    package func matches(for decoded: DecodedChange, into serials: inout [UInt64]) {
        reading { content, reader in
            content.refresh(decoded)
            reader.scratch.mostSteps = Limits.maximumStepsPerChange
            _ = content.match(decoded, &reader.scratch, into: &serials)
            content.sample(decoded, &reader.samples)
        }
    }

    /// Finds the subscriptions that a change fires, from the text of
    /// ``RelayModel/RecordChange/storedForm`` in the log.
    ///
    /// Only the parts of the text that predicates use are decoded. The serials are written in
    /// ascending order. A row of an initial snapshot fires nothing. `appendedAt` is the moment of
    /// the evaluation if the source gave none.
    ///
    /// - Returns: `false` if the text has another form; nothing was matched then.
    package func matches(
        forStored text: String, appendedAt: Timestamp, into serials: inout [UInt64]
    ) -> Bool {
        var dear: DearChange?
        var erring: [UInt64] = []
        return matches(
            forStored: text, appendedAt: appendedAt, mostSteps: Limits.maximumStepsPerChange,
            into: &serials, erring: &erring, dear: &dear)
    }

    /// Finds the subscriptions that a stored change fires, with a limit on the total steps.
    ///
    /// If the change takes more steps, `dear` is set to its costs and `serials` is empty. The
    /// serials of subscriptions whose predicates had an evaluation error are added to `erring`.
    ///
    /// A text that names readers is given up early, as if it had another form: the conditions of
    /// users who may not read the record must not be evaluated, and the text does not say who they
    /// are.
    package func matches(
        forStored text: String, appendedAt: Timestamp, mostSteps: Int,
        into serials: inout [UInt64], erring: inout [UInt64], dear: inout DearChange?
    ) -> Bool {
        reading { content, reader in
            reader.change.encoder.mostSlowBytes = Self.slowBytes(within: mostSteps)
            reader.change.mostWalkedSteps = mostSteps
            guard content.decode(text, appendedAt: appendedAt, into: reader.change) else {
                return false
            }
            if reader.change.isSnapshot {
                serials.removeAll(keepingCapacity: true)
                return true
            }
            dear = Self.givenUp(reader.change, content, after: mostSteps, &serials)
            if dear != nil { return true }
            let isForSome = reader.change.namesReaders
            reader.scratch.mostSteps = isForSome ? min(mostSteps, Self.stepsForAll) : mostSteps
            dear = content.match(reader.change, &reader.scratch, into: &serials)
            if isForSome, dear != nil {
                dear = nil
                return false
            }
            if !reader.scratch.erring.isEmpty { erring += reader.scratch.erring }
            content.sample(reader.change, &reader.samples)
            return true
        }
    }

    /// The number of steps, a tenth of a millisecond, after which it is worth finding out who may
    /// read a record.
    private static let stepsForAll = 50_000

    /// Returns the limit on the bytes of texts that are slow to decode.
    ///
    /// It applies to a match with a reduced limit of steps only. With the full limit, a change is
    /// decoded whatever its size, because no condition is to blame for it.
    private static func slowBytes(within mostSteps: Int) -> Int {
        mostSteps < Limits.maximumStepsPerChange ? max(mostSteps / 40, 4096) : .max
    }

    /// Returns the costs of a change that was given up before any condition was judged.
    private static func givenUp(
        _ change: DecodedChange, _ content: IndexContent, after steps: Int,
        _ serials: inout [UInt64]
    ) -> DearChange? {
        guard change.encoder.isGivenUp || change.isCutShort else { return nil }
        serials.removeAll(keepingCapacity: true)
        guard change.isCutShort else {
            return DearChange(steps: steps + 1, costs: [], isOfTexts: true)
        }
        // Finding the responsible subscriptions takes a scan of the whole index. A caller with such
        // a low limit judges the change again elsewhere, and needs no responsible subscriptions
        // yet.
        guard steps >= leastForBlame else {
            return DearChange(steps: change.walkedSteps, costs: [])
        }
        return content.dearWalk(change)
    }

    /// Two milliseconds, at 2 ns a step.
    private static let leastForBlame = 1_000_000

    /// Decodes a change from its text in the log, to measure the cost.
    package func decode(
        stored text: String, appendedAt: Timestamp, into decoded: DecodedChange
    ) -> Bool {
        reading { content, _ in content.decode(text, appendedAt: appendedAt, into: decoded) }
    }

    // MARK: Observing

    /// The number of evaluation errors by serial, for the subscriptions that are filed now.
    ///
    /// An error is found only if a key leads to the predicate and a row reaches the comparison.
    package var errors: [UInt64: UInt64] {
        writing { $0.errors }
    }

    /// What the index holds and what matching has cost so far.
    package var statistics: IndexStatistics {
        writing { $0.statistics }
    }

    // MARK: Readers

    func reading<Result>(
        _ body: (IndexContent, inout IndexReader.State) -> Result
    ) -> Result {
        let start = turn.add(1, ordering: .relaxed).newValue
        for offset in 0..<readers.count {
            let reader = readers[(start &+ offset) & (Self.readerCount - 1)]
            if let result = reader.withLockIfFree({ body(content, &$0) }) { return result }
        }
        return readers[start & (Self.readerCount - 1)].withLock { body(content, &$0) }
    }

    @inline(__always)
    func writing<Result>(_ body: (IndexContent) -> Result) -> Result {
        // Always in the same order, so that two writers cannot wait for each other.
        for reader in readers { reader.take(for: content) }
        defer { for reader in readers { reader.giveBack() } }
        return body(content)
    }
}

/// A change that took more steps than one change may take, and the conditions that took them.
package struct DearChange: Error, Sendable, Hashable {
    /// The steps that the condition of one subscription took.
    package struct Cost: Sendable, Hashable {
        /// The serial of the subscription.
        package let serial: UInt64
        /// The number of steps; if several subscriptions share the condition, an equal part of it.
        package let steps: Int

        /// Creates the cost of a condition.
        package init(serial: UInt64, steps: Int) {
            self.serial = serial
            self.steps = steps
        }
    }

    /// The number of steps until the change was given up.
    package let steps: Int
    /// The conditions that took many of the steps, in no particular order.
    package let costs: [Cost]
    /// Whether the change was given up before any condition was judged, because its texts take too
    /// long to decode.
    ///
    /// No condition is to blame then.
    package let isOfTexts: Bool

    /// Creates the description of a change that was given up.
    package init(steps: Int, costs: [Cost], isOfTexts: Bool = false) {
        self.steps = steps
        self.costs = costs
        self.isOfTexts = isOfTexts
    }

    /// The maximum number of subscriptions that are named for one change.
    private static let mostNamed = 100

    /// Returns the serials of the responsible subscriptions: enough that less than half of the
    /// steps would remain without them.
    ///
    /// The subscriptions are grouped by user, and the user whose conditions took the most steps
    /// together comes first, so that no user's subscriptions are ended because of another user's
    /// steps. Among equal costs, the newest comes first.
    package func blamed<Owner: Hashable>(by owner: (UInt64) -> Owner?) -> [UInt64] {
        let ofOwners = Dictionary(grouping: costs) { owner($0.serial) }.values.map { costs in
            (
                costs: costs.sorted { ($0.steps, $0.serial) > ($1.steps, $1.serial) },
                steps: costs.reduce(0) { $0 + $1.steps },
                newest: costs.map(\.serial).max() ?? 0
            )
        }.sorted { ($0.steps, $0.newest) > ($1.steps, $1.newest) }
        let all = ofOwners.reduce(0) { $0 + $1.steps }
        var left = all
        var named: [UInt64] = []
        for owner in ofOwners {
            for cost in owner.costs {
                guard left > all / 2, named.count < Self.mostNamed else { return named }
                left -= cost.steps
                named.append(cost.serial)
            }
        }
        return named
    }
}
