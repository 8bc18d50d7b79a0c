package import RelayModel
package import Storage

/// Counts what a rehearsal came to.
package struct RehearsalTally: Sendable {
    /// The order in which changes come.
    package enum Order: Sendable, Hashable {
        /// From the newest back, as a log is read.
        case newestFirst
        /// As they happened, as a file has them.
        case oldestFirst
    }

    /// Changes that are remembered of each kind, the newest.
    private let most: Int
    private let order: Order
    private let isOnce: Bool
    private let wasOnce: Bool

    /// Changes that were looked at.
    package private(set) var lookedAt = 0
    /// The first of them that happened, and the last.
    package private(set) var oldest: LoggedPastChange?
    package private(set) var newest: LoggedPastChange?
    /// Changes that match, of which one alone fires a subscription that fires once.
    package private(set) var matched = 0
    /// Those that matched the subscription as it was saved.
    private var matchedFormerly = 0
    /// Those that matched both.
    private var matchedBoth = 0
    private var every = Counts()
    private var first: Match?
    private var firstFormerly: Match?
    private var examples: [LoggedPastChange] = []
    private var formerExamples: [LoggedPastChange] = []
    private var newExamples: [LoggedPastChange] = []
    private var goneExamples: [LoggedPastChange] = []
    /// Firings in the order in which they came, at most twice as many as are told of.
    private var all: [Firing]?

    /// Firings that are remembered, the newest, where it matters when they were.
    package static let mostFirings = 100_000

    /// When it would have fired, and for whom not.
    package struct Firing: Sendable {
        /// When the change was appended.
        package let at: Timestamp
        /// The serials of the devices that get no push, because they made the change.
        package let leftOut: [UInt64]
    }

    /// How often, when and by what.
    package struct Counts: Sendable, Hashable {
        /// Changes that fire it.
        package var fired = 0
        /// Pushes to the devices that its owner has now.
        package var pushes = 0
        /// How many of ``fired`` were of each operation.
        package var byOperation: [ChangeOperation: Int] = [:]
        /// How many of ``fired`` were in each hour since 1970 that had any.
        package var byHour: [Int64: Int] = [:]

        mutating func add(_ verdict: Rehearsal.Verdict, at moment: Timestamp) {
            fired += 1
            pushes += verdict.pushes
            byOperation[verdict.operation, default: 0] += 1
            // Rounded down, before 1970 too.
            byHour[(moment.seconds - (moment.seconds % 3600 + 3600) % 3600) / 3600, default: 0] += 1
        }
    }

    private struct Match {
        let change: LoggedPastChange
        let verdict: Rehearsal.Verdict
        let matchesBoth: Bool
    }

    /// Counts nothing yet; `most` changes are remembered of each kind, and with `keepsFirings` when
    /// each of the newest firings was.
    package init(
        of subscription: Subscription, insteadOf former: Subscription?, remembering most: Int,
        order: Order = .newestFirst, keepsFirings: Bool = false
    ) {
        if keepsFirings { all = [] }
        self.order = order
        isOnce = subscription.firesOnce
        wasOnce = former?.firesOnce ?? false
        self.most = most
    }

    /// Takes in the next change of the order.
    package mutating func add(_ change: LoggedPastChange, _ verdict: Rehearsal.Verdict) {
        lookedAt += 1
        if oldest == nil || order == .newestFirst { oldest = change }
        if newest == nil || order == .oldestFirst { newest = change }
        let both = verdict.fires && verdict.firedFormerly
        if both { matchedBoth += 1 }
        if verdict.fires {
            matched += 1
            every.add(verdict, at: change.appendedAt)
            note(Firing(at: change.appendedAt, leftOut: verdict.leftOut))
            note(Match(change: change, verdict: verdict, matchesBoth: both), as: &first)
            keep(change, in: &examples, most)
            if !both { keep(change, in: &newExamples, most) }
        }
        if verdict.firedFormerly {
            matchedFormerly += 1
            note(Match(change: change, verdict: verdict, matchesBoth: both), as: &firstFormerly)
            // One more, because one may be left out.
            keep(change, in: &formerExamples, most + 1)
            if !both { keep(change, in: &goneExamples, most) }
        }
    }

    private mutating func note(_ firing: Firing) {
        guard let count = all?.count else { return }
        switch order {
        case .newestFirst: if count < Self.mostFirings { all?.append(firing) }
        case .oldestFirst:
            if count >= 2 * Self.mostFirings { all?.removeFirst(Self.mostFirings) }
            all?.append(firing)
        }
    }

    private func note(_ match: Match, as first: inout Match?) {
        if first == nil || order == .newestFirst { first = match }
    }

    /// Keeps the newest `most` in a list, which is in the order of the newest first.
    private func keep(
        _ change: LoggedPastChange, in list: inout [LoggedPastChange], _ most: Int
    ) {
        switch order {
        case .newestFirst:
            if list.count < most { list.append(change) }
        case .oldestFirst:
            list.insert(change, at: 0)
            if list.count > most { list.removeLast() }
        }
    }

    // MARK: What came of it

    /// What would have fired: of a subscription that fires once, by the first change that matches.
    package var counts: Counts {
        guard isOnce else { return every }
        var counts = Counts()
        if let first { counts.add(first.verdict, at: first.change.appendedAt) }
        return counts
    }

    /// The change by which a subscription that fires once would have fired.
    package var once: LoggedPastChange? { isOnce ? first?.change : nil }

    /// The newest firings, the oldest of them first; `nil` if they were not kept.
    package var firings: [Firing]? {
        guard let all else { return nil }
        guard isOnce else {
            return order == .newestFirst ? all.reversed() : all.suffix(Self.mostFirings)
        }
        return first.map { [Firing(at: $0.change.appendedAt, leftOut: $0.verdict.leftOut)] } ?? []
    }

    /// The newest changes that would have fired it.
    package var firedExamples: [LoggedPastChange] {
        isOnce ? [first?.change].compactMap(\.self).prefix(most).map(\.self) : examples
    }

    /// What a change of the subscription adds, and what it takes away.
    package struct Difference: Sendable, Hashable {
        /// How often it would have fired as it was saved.
        package var firedFormerly = 0
        /// Changes that fire it now, and did not.
        package var added = 0
        /// Changes that fired it, and do not now.
        package var removed = 0
        /// The newest of those added.
        package var addedExamples: [LoggedPastChange] = []
        /// The newest of those removed.
        package var removedExamples: [LoggedPastChange] = []
    }

    /// How it differs from the subscription as it was saved.
    package var difference: Difference {
        var difference = Difference(
            firedFormerly: wasOnce ? min(matchedFormerly, 1) : matchedFormerly)
        let first = first?.change
        let former = firstFormerly?.change
        switch (isOnce, wasOnce) {
        case (false, false):
            difference.added = matched - matchedBoth
            difference.removed = matchedFormerly - matchedBoth
            difference.addedExamples = newExamples
            difference.removedExamples = goneExamples
        case (true, true):
            guard first?.position != former?.position else { break }
            difference.addedExamples = [first].compactMap(\.self)
            difference.removedExamples = [former].compactMap(\.self)
            difference.added = difference.addedExamples.count
            difference.removed = difference.removedExamples.count
        case (true, false):
            let isShared = self.first?.matchesBoth == true
            difference.addedExamples = isShared ? [] : [first].compactMap(\.self)
            difference.added = difference.addedExamples.count
            difference.removed = matchedFormerly - (isShared ? 1 : 0)
            difference.removedExamples = rest(of: formerExamples, without: first)
        case (false, true):
            let isShared = firstFormerly?.matchesBoth == true
            difference.added = matched - (isShared ? 1 : 0)
            difference.addedExamples = rest(of: examples, without: former)
            difference.removedExamples = isShared ? [] : [former].compactMap(\.self)
            difference.removed = difference.removedExamples.count
        }
        return difference
    }

    private func rest(
        of changes: [LoggedPastChange], without one: LoggedPastChange?
    ) -> [LoggedPastChange] {
        Array(changes.filter { $0.position != one?.position }.prefix(most))
    }
}
