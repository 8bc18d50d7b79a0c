package import RelayModel
package import Storage

/// The counts of a rehearsal.
package struct RehearsalTally: Sendable {
    /// The order in which the changes are added.
    package enum Order: Sendable, Hashable {
        /// From newest to oldest, as the log is read.
        case newestFirst
        /// From oldest to newest, as a file contains them.
        case oldestFirst
    }

    /// The maximum number of changes of each kind that are kept as examples, the newest ones.
    private let most: Int
    private let order: Order
    private let isOnce: Bool
    private let wasOnce: Bool

    /// The number of changes that were looked at.
    package private(set) var lookedAt = 0
    /// The oldest change that was looked at, and the newest.
    package private(set) var oldest: LoggedPastChange?
    package private(set) var newest: LoggedPastChange?
    /// The number of changes that match.
    ///
    /// A subscription that fires once would fire only by the first of them.
    package private(set) var matched = 0
    /// The number of changes that matched the subscription as it was saved before.
    private var matchedFormerly = 0
    /// The number of changes that matched both.
    private var matchedBoth = 0
    private var every = Counts()
    private var first: Match?
    private var firstFormerly: Match?
    private var examples: [LoggedPastChange] = []
    private var formerExamples: [LoggedPastChange] = []
    private var newExamples: [LoggedPastChange] = []
    private var goneExamples: [LoggedPastChange] = []
    /// The firings in the order in which they were added, at most twice `mostFirings`.
    private var all: [Firing]?

    /// The maximum number of firings that are kept, the newest ones, if their times matter.
    package static let mostFirings = 100_000

    /// The time of a firing, and the devices that it leaves out.
    package struct Firing: Sendable {
        /// The time when the change was appended.
        package let at: Timestamp
        /// The serials of the devices that get no push because they made the change.
        package let leftOut: [UInt64]
    }

    /// The number of firings, by operation and by hour.
    package struct Counts: Sendable, Hashable {
        /// The number of changes that fire the subscription.
        package var fired = 0
        /// The number of pushes to the devices that the owner has now.
        package var pushes = 0
        /// The numbers of ``fired`` changes by operation.
        package var byOperation: [ChangeOperation: Int] = [:]
        /// The numbers of ``fired`` changes by hours since 1970.
        ///
        /// Hours without any are missing.
        package var byHour: [Int64: Int] = [:]

        mutating func add(_ verdict: Rehearsal.Verdict, at moment: Timestamp) {
            fired += 1
            pushes += verdict.pushes
            byOperation[verdict.operation, default: 0] += 1
            // Rounded down, also before 1970.
            byHour[(moment.seconds - (moment.seconds % 3600 + 3600) % 3600) / 3600, default: 0] += 1
        }
    }

    private struct Match {
        let change: LoggedPastChange
        let verdict: Rehearsal.Verdict
        let matchesBoth: Bool
    }

    /// Creates an empty tally that keeps `most` changes of each kind as examples.
    ///
    /// With `keepsFirings` it keeps the times of the newest firings too.
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

    /// Adds the next change in the order.
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
            // One more, because the difference may leave one out.
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

    /// Keeps the newest `most` changes in a list, newest first.
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

    /// The firings of the subscription.
    ///
    /// If it fires once, only the first matching change counts.
    package var counts: Counts {
        guard isOnce else { return every }
        var counts = Counts()
        if let first { counts.add(first.verdict, at: first.change.appendedAt) }
        return counts
    }

    /// The change by which a once subscription would have fired.
    package var once: LoggedPastChange? { isOnce ? first?.change : nil }

    /// The newest firings, oldest first, or `nil` if they were not kept.
    package var firings: [Firing]? {
        guard let all else { return nil }
        guard isOnce else {
            return order == .newestFirst ? all.reversed() : all.suffix(Self.mostFirings)
        }
        return first.map { [Firing(at: $0.change.appendedAt, leftOut: $0.verdict.leftOut)] } ?? []
    }

    /// The newest changes that would have fired the subscription.
    package var firedExamples: [LoggedPastChange] {
        isOnce ? [first?.change].compactMap(\.self).prefix(most).map(\.self) : examples
    }

    /// What editing the subscription adds and removes.
    package struct Difference: Sendable, Hashable {
        /// How often it would have fired as it was saved before.
        package var firedFormerly = 0
        /// The number of changes that fire it now, and did not before.
        package var added = 0
        /// The number of changes that fired it before, and do not now.
        package var removed = 0
        /// The newest of the added changes.
        package var addedExamples: [LoggedPastChange] = []
        /// The newest of the removed changes.
        package var removedExamples: [LoggedPastChange] = []
    }

    /// The difference from the subscription as it was saved before.
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
