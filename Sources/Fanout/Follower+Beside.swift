import Matching
import RelayModel
import Storage

// A change whose conditions take long is judged beside the log while other containers write too:
// they pass it. What comes of its own container waits, so that what is active at a position stays
// exact, and the progress waits before it, so that a crash loses nothing. Its pushes are ranges,
// which are worked beside the log as well.
extension Follower {
    /// Leaves a change to be judged beside the log.
    mutating func putOff(
        _ change: LoggedChange, isStale: Bool, _ entry: FollowedEntry
    ) async throws {
        try await handOver(finished: LogPosition(entry.position.rawValue - 1))
        try await makeRoomForOne()
        judge(change, isStale: isStale, entry)
        try await handOverAsPutOff(entry)
    }

    /// Has an entry wait if something of its container was put off; says whether it does.
    mutating func waits(_ entry: FollowedEntry) async throws -> Bool {
        guard putOff.holds(entry.container) else { return false }
        if entry.isChange {
            try await handOver(finished: LogPosition(entry.position.rawValue - 1))
            try await makeRoomForOne()
            // What it would wait for may have been made up for that.
            guard putOff.holds(entry.container) else { return false }
            try await handOverAsPutOff(entry)
        }
        putOff.hold(entry)
        // Until there is room again and no longer: what comes next may be others'.
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

    /// Hands over that a change is put off, after all that was before it.
    private mutating func handOverAsPutOff(_ entry: FollowedEntry) async throws {
        handedOver = entry.position
        putOff.noteHandedOver()
        try await take(
            OwedBatch(
                deliveries: [], finished: entry.position, putsOff: true, behind: putOff.first))
    }

    /// Sees to it that whoever takes a batch does not wait for room that comes only once what was
    /// put off is made up.
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

    /// The same for one more that is put off, whose place keeps a place of the room.
    private mutating func makeRoomForOne() async throws {
        if let beside, putOff.handedOver >= beside.room { try await makeUpAll() }
    }

    /// Waits until all that was put off is judged, and makes it up.
    mutating func makeUpAll() async throws {
        while !putOff.isEmpty { try await makeUpNext() }
    }

    /// Makes up what is judged by now; if that is nothing, waits until something may be.
    private mutating func makeUpNext() async throws {
        guard let beside else { return }
        let before = putOff.worked
        try await makeUpJudged()
        guard putOff.worked == before, !putOff.isEmpty else { return }
        // Judging ends by its budget, also for one who is cancelled.
        await Task { await beside.judge.wait() }.value
    }

    /// Makes up what is judged by now.
    mutating func makeUpJudged() async throws {
        guard let beside, !putOff.isEmpty else { return }
        for job in beside.judge.takeJudged() {
            if let outcome = job.takeOutcome() { try await makeUp(job.entry, outcome) }
        }
    }

    /// Works a change that was judged beside the log, and what waited for it.
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
        // What waited is handed over with it: the progress may pass its place at any moment.
        let others = pendingBadges
        pendingBadges = [:]
        workWaiting(of: entry.container)
        batch.madeUp?.badges = pendingBadges
        pendingBadges = others
        batch.behind = putOff.first
        try await take(batch)
    }

    /// Applies the edits of a container that wait, and has the change after them judged.
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

    /// What is handed over of a change that was put off.
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

    /// Waits until there is more in the log, a snapshot may be due, or something is judged.
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
