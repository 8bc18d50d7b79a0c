import Matching
import RelayModel
import Storage

// A change whose conditions take long is judged beside the log while other containers write too,
// and their changes overtake it. Later entries of its own container wait, so that the set of active
// subscriptions at a position stays exact. The progress waits before the change, so that a crash
// loses nothing. Its pushes become ranges, which are also worked beside the log.
extension Follower {
    /// Puts a change off, so that it is judged beside the log.
    mutating func putOff(
        _ change: LoggedChange, isStale: Bool, _ entry: FollowedEntry
    ) async throws {
        try await handOver(finished: LogPosition(entry.position.rawValue - 1))
        try await makeRoomForOne()
        judge(change, isStale: isStale, entry)
        try await handOverAsPutOff(entry)
    }

    /// Makes an entry wait if an entry of its container was put off.
    ///
    /// Returns whether it waits.
    mutating func waits(_ entry: FollowedEntry) async throws -> Bool {
        guard putOff.holds(entry.container) else { return false }
        if entry.isChange {
            try await handOver(finished: LogPosition(entry.position.rawValue - 1))
            try await makeRoomForOne()
            // Making room may have worked the entries that this one would wait for.
            guard putOff.holds(entry.container) else { return false }
            try await handOverAsPutOff(entry)
        }
        putOff.hold(entry)
        // Wait only until there is room again, because the next entries may belong to other
        // containers.
        while putOff.isFull { try await makeUpNext() }
        return true
    }

    private mutating func judge(
        _ change: LoggedChange, isStale: Bool, _ entry: FollowedEntry
    ) {
        putOff.judge(entry)
        pulse?.putOff(entry.position)
        beside?.judge.judge(
            JudgingJob(
                change, isStale: isStale, of: entry, by: state.lend(entry.container),
                in: state.judgingTurns))
    }

    /// Hands over that a change was put off, after everything before it.
    private mutating func handOverAsPutOff(_ entry: FollowedEntry) async throws {
        handedOver = entry.position
        putOff.noteHandedOver()
        try await take(
            OwedBatch(
                deliveries: [], finished: entry.position, putsOff: true, behind: putOff.first))
    }

    /// Makes sure that the receiver of a batch does not wait for room that only becomes free once
    /// the put-off entries have been worked.
    mutating func makeRoom(for batch: OwedBatch) async throws {
        guard let beside, !putOff.isEmpty else { return }
        let count =
            batch.deliveries.count + batch.inbox.count
            + batch.firings.reduce(0) { $0 + $1.count }
        if putOff.handedOver + count > beside.room {
            try await makeUpAll()
        } else {
            putOff.noteHandedOver(count)
        }
    }

    /// Makes room for one more change that is put off, which takes a place of the room.
    private mutating func makeRoomForOne() async throws {
        if let beside, putOff.handedOver >= beside.room { try await makeUpAll() }
    }

    /// Waits until all put-off changes are judged, and works them.
    mutating func makeUpAll() async throws {
        while !putOff.isEmpty { try await makeUpNext() }
    }

    /// Works the changes that are judged by now.
    ///
    /// If there are none, waits until there may be some.
    private mutating func makeUpNext() async throws {
        guard let beside else { return }
        let before = putOff.worked
        try await makeUpJudged()
        guard putOff.worked == before, !putOff.isEmpty else { return }
        // The wait is not cancelled, because judging ends by its budget of steps anyway.
        await Task { await beside.judge.wait() }.value
    }

    /// Works the changes that are judged by now.
    mutating func makeUpJudged() async throws {
        guard let beside, !putOff.isEmpty else { return }
        for job in beside.judge.takeJudged() {
            if let outcome = job.takeOutcome() { try await makeUp(job.entry, outcome) }
        }
    }

    /// Works a change that was judged beside the log, and the entries that waited for it.
    private mutating func makeUp(
        _ entry: FollowedEntry, _ outcome: consuming JudgingJob.Outcome
    ) async throws {
        let (errors, judged) = (outcome.state.erring, outcome.found)
        state.takeBack((consume outcome).state)
        pulse?.makeUp(FollowerPulse.Entry(position: entry.position, container: entry.container))
        guard case .change(let change, let isStale) = entry.body else { return }
        let found = try await settled(judged, of: change, isStale: isStale, entry)
        var batch = try await madeUp(found, entry, errors: errors)
        putOff.finish(entry.container)
        // The waiting edits are handed over with it, because the progress may pass its position at
        // any moment.
        let others = pendingBadges
        pendingBadges = [:]
        workWaiting(of: entry.container)
        batch.madeUp?.badges = pendingBadges
        pendingBadges = others
        batch.behind = putOff.first
        try await take(batch)
    }

    /// Applies the waiting edits of a container up to the next change, and has that change judged.
    private mutating func workWaiting(of container: ContainerKey) {
        while let next = putOff.next(of: container) {
            switch next.body {
            case .change(let change, let isStale):
                return judge(change, isStale: isStale, next)
            case .edit(let edit):
                apply(edit, of: container)
                edits += 1
            }
        }
    }

    /// Returns the batch that hands over a put-off change.
    private mutating func madeUp(
        _ found: FiredChange?, _ entry: FollowedEntry, errors: [UInt64]
    ) async throws -> OwedBatch {
        var owing: [UInt64] = []
        var unreached: [UnreachedFiring] = []
        var ranges: [NewRange] = []
        // A container is saved before anything of it is appended.
        if let found, settings(entry.container) != nil {
            var fired = found.serials
            let once = try await claimOnce(&fired, at: entry.position, of: entry.container)
            watch(fired, by: found.change, entry)
            (owing, unreached) = state.withoutRepeatedSilence(
                fired, of: found.change, in: entry.container)
            ranges = self.ranges(of: owing, entry)
            end(once, of: entry.container)
        }
        let note = FiringNote(
            position: entry.position, at: entry.appendedAt, fired: unreached.map(\.serial),
            unreached: unreached, errors: errors)
        return OwedBatch(
            deliveries: [], finished: nil, firings: note.count > 0 ? [note] : [],
            madeUp: MadeUpChange(position: entry.position, ranges: ranges))
    }

    /// Waits until the log has grown, a snapshot may be due, or a change has been judged.
    mutating func waitForNews(beyond position: LogPosition) async throws {
        guard let beside, !putOff.isEmpty else {
            return try await waitForGrowth(beyond: position)
        }
        try await withThrowingTaskGroup(of: Void.self) { [log] group in
            group.addTask { try await log.waitForGrowth(beyond: position) }
            group.addTask { await beside.judge.wait() }
            try await group.next()
            group.cancelAll()
        }
    }
}
