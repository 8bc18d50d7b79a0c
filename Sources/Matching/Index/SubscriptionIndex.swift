package import RelayModel
import Synchronization

/// The index over the saved subscriptions of one container and environment.
///
/// For every change it finds the subscriptions that the change fires, exactly those that the
/// reference evaluator would (docs/firing-rules.md), at a cost that grows with what matches:
///
/// - create and update are judged on the after image, delete on the before image; without that
///   image only subscriptions that ask nothing of fields fire;
/// - a predicate that has an evaluation error does not fire, and is counted in ``errors``;
/// - a comparison on a field that a partial image lacks counts as failing, and so does its contrary
///   under NOT: such a predicate fires only if it would whatever the field holds;
/// - private and shared databases are seen by their owner alone.
///
/// Any number of threads may match while others insert and remove. A match sees a change of the
/// index wholly or not at all. A match holds one of a few readers, an edit holds all of them; so a
/// match waits for one edit at most (about a microsecond), and an edit for the matches under
/// way. See `docs/decisions/0004-matching-structure.md`.
package final class SubscriptionIndex: Sendable {
    private let readers: [IndexReader]
    private let turn = Atomic<Int>(0)
    private let content: IndexContent

    /// Readers that can be inside at the same time.
    private static let readerCount = 4

    /// Creates an empty index.
    ///
    /// - Parameter seed: keeps the hashes secret, so that nobody can save keys that collide; drawn
    /// at
    ///   random by the caller.
    package convenience init(seed: UInt64) {
        self.init(seed: seed, threadTime: ThreadTime.nanoseconds)
    }

    /// The same with another measure of the time that a thread has worked, in nanoseconds.
    init(seed: UInt64, threadTime: @escaping @Sendable () -> UInt64) {
        content = IndexContent(seed: seed)
        readers = (0..<Self.readerCount).map { _ in IndexReader(threadTime: threadTime) }
    }

    // MARK: Writing

    /// Files a subscription, in place of one with the same serial.
    ///
    /// - Returns: what it is expected to cost.
    @discardableResult
    package func insert(_ subscription: IndexedSubscription) -> MatchingCost {
        writing { $0.insert(subscription) }
    }

    /// Takes a subscription out; says whether it was there.
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

    /// What a subscription would cost, without filing it.
    package func cost(of subscription: IndexedSubscription) -> MatchingCost {
        writing { $0.cost(of: subscription) }
    }

    /// Subscriptions that would be filed under better keys, or weighed otherwise, by what changes
    /// have shown since they were filed: the caller, who has their predicates, inserts them again.
    ///
    /// Each is named once, at most `most` at a time. A key is looked at when it turns out to be hit
    /// by one change of its record type in fifty, and again whenever its postings have doubled.
    package func takeMisfiled(most: Int) -> [UInt64] {
        writing { $0.takeMisfiled(most: most) }
    }

    // MARK: Matching

    /// The serials of the subscriptions that a change fires, ascending.
    ///
    /// Where `now` is `nil`, `now()` is the moment the change happened.
    package func matches(for change: RecordChange, now: Timestamp? = nil) -> [UInt64] {
        var serials: [UInt64] = []
        matches(for: change, now: now, into: &serials)
        return serials
    }

    /// The same into an array whose memory is used again.
    ///
    /// - Returns: what a change came to that took more than `mostSteps` in all; then there are no
    ///   serials.
    @discardableResult
    package func matches(
        for change: RecordChange, now: Timestamp? = nil,
        mostSteps: Int = Limits.maximumStepsPerChange, into serials: inout [UInt64]
    ) -> DearChange? {
        var erring: [UInt64] = []
        return matches(
            for: change, now: now, mostSteps: mostSteps, into: &serials, erring: &erring)
    }

    /// The same, and adds the serials of those whose predicates had an evaluation error to
    /// `erring`, in no order and at most ten thousand.
    package func matches(
        for change: RecordChange, now: Timestamp?, mostSteps: Int, into serials: inout [UInt64],
        erring: inout [UInt64]
    ) -> DearChange? {
        reading { content, reader -> DearChange? in
            reader.change.encoder.mostSlowBytes = Self.slowBytes(within: mostSteps)
            reader.change.mostWalkedSteps = mostSteps
            content.decode(change, now: now, into: reader.change)
            if let dear = Self.givenUp(reader.change, content, after: mostSteps, &serials) {
                return dear
            }
            reader.scratch.mostSteps = mostSteps
            let dear = content.match(reader.change, &reader.scratch, into: &serials)
            if !reader.scratch.erring.isEmpty { erring += reader.scratch.erring }
            content.sample(reader.change, &reader.samples)
            return dear
        }
    }

    /// Decodes a change for ``matches(for:into:)-(DecodedChange,_)``.
    package func decode(_ change: RecordChange, into decoded: DecodedChange) {
        reading { content, _ in content.decode(change, now: nil, into: decoded) }
    }

    /// The serials of the subscriptions that a decoded change fires, ascending.
    ///
    /// A change that was decoded before the index learned a new field or kind of key is decoded
    /// again.
    package func matches(for decoded: DecodedChange, into serials: inout [UInt64]) {
        reading { content, reader in
            content.refresh(decoded)
            reader.scratch.mostSteps = Limits.maximumStepsPerChange
            _ = content.match(decoded, &reader.scratch, into: &serials)
            content.sample(decoded, &reader.samples)
        }
    }

    /// The serials of the subscriptions that a change fires, ascending, from the text of
    /// ``RelayModel/RecordChange/storedForm`` as the log keeps it: nothing is made of the text
    /// but what predicates ask for.
    ///
    /// A row of an initial snapshot fires nothing.
    ///
    /// `appendedAt` is the moment of the evaluation where the source says none.
    ///
    /// - Returns: `false` if the text has another form; then nothing was matched.
    package func matches(
        forStored text: String, appendedAt: Timestamp, into serials: inout [UInt64]
    ) -> Bool {
        var dear: DearChange?
        var erring: [UInt64] = []
        return matches(
            forStored: text, appendedAt: appendedAt, mostSteps: Limits.maximumStepsPerChange,
            into: &serials, erring: &erring, dear: &dear)
    }

    /// The same with a bound on the steps in all: `dear` is what a change came to that took more,
    /// and then there are no serials.
    ///
    /// Those whose predicates had an error are added to `erring`.
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
            reader.scratch.mostSteps = mostSteps
            dear = content.match(reader.change, &reader.scratch, into: &serials)
            if !reader.scratch.erring.isEmpty { erring += reader.scratch.erring }
            content.sample(reader.change, &reader.samples)
            return true
        }
    }

    /// Bytes of texts that take long to be decoded, of a change that is to be given up early; any
    /// other is decoded however many there are, because no condition is to blame.
    private static func slowBytes(within mostSteps: Int) -> Int {
        mostSteps < Limits.maximumStepsPerChange ? max(mostSteps / 40, 4096) : .max
    }

    /// What a change comes to that was given up before any condition was judged.
    private static func givenUp(
        _ change: DecodedChange, _ content: IndexContent, after steps: Int,
        _ serials: inout [UInt64]
    ) -> DearChange? {
        guard change.encoder.isGivenUp || change.isCutShort else { return nil }
        serials.removeAll(keepingCapacity: true)
        guard change.isCutShort else {
            return DearChange(steps: steps + 1, costs: [], isOfTexts: true)
        }
        // To find out who is to blame takes a look at the whole index: whoever gives up that early
        // judges the change again elsewhere, and blames nobody yet.
        guard steps >= leastForBlame else {
            return DearChange(steps: change.walkedSteps, costs: [])
        }
        return content.dearWalk(change)
    }

    /// Two milliseconds.
    private static let leastForBlame = 1_000_000

    /// Decodes a change as the log keeps it, to measure what that costs.
    package func decode(
        stored text: String, appendedAt: Timestamp, into decoded: DecodedChange
    ) -> Bool {
        reading { content, _ in content.decode(text, appendedAt: appendedAt, into: decoded) }
    }

    // MARK: Observing

    /// Evaluation errors by serial, of subscriptions that are filed now.
    ///
    /// An error is met only where a key leads to the predicate and a row reaches the comparison.
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

/// A change that took more steps than one change may take, and by whose conditions.
package struct DearChange: Error, Sendable, Hashable {
    /// What the condition of one subscription took.
    package struct Cost: Sendable, Hashable {
        /// The subscription.
        package let serial: UInt64
        /// The steps; of a condition that several subscriptions have, each one's part.
        package let steps: Int

        /// Notes what a condition took.
        package init(serial: UInt64, steps: Int) {
            self.serial = serial
            self.steps = steps
        }
    }

    /// The steps until it was given up.
    package let steps: Int
    /// The conditions that took many of them, in no order.
    package let costs: [Cost]
    /// Whether it was given up before any condition was judged, for what its texts take to be read:
    /// no condition is to blame.
    package let isOfTexts: Bool

    /// Names a change that was given up.
    package init(steps: Int, costs: [Cost], isOfTexts: Bool = false) {
        self.steps = steps
        self.costs = costs
        self.isOfTexts = isOfTexts
    }

    /// Subscriptions that are named of one change.
    private static let mostNamed = 100

    /// The serials of those who are to blame: so many that without them less than half of the
    /// steps would be left.
    ///
    /// Each may have conditions that are dear, so the one user is named first whose conditions took
    /// most together: nobody's subscription ends for what another one's took. Of several who took
    /// as much, the newest come first.
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
