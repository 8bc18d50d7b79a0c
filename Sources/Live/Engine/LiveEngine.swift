//  Live: the live queries of connected clients, and the frames that keep their results up to date.
//
//  The engine follows the log by itself, from the head on. It keeps nothing about a client that has
//  gone: a returning client names a token, and is sent from the log what has changed since. Queries
//  that show the same are one group, matched once and written once. The engine knows no sockets: it
//  hands frames as bytes to hubs.
//
//  Concurrency: one actor, which posts to each hub in the order of the log. Invariants: a frame
//  belongs to a position; an `at` frame closes the frames that belong together; between two `at`
//  frames nothing is sent twice or left out. The module imports RelayModel, PredicateLanguage,
//  Matching and Storage, and never Fanout.

package import Logging
import Matching
import Metrics
import RelayModel
package import Storage

/// Follows the log for connected clients.
package actor LiveEngine {
    let log: any ShardLog
    let shadow: any Shadow
    let writer: FrameWriter
    let settings: LiveSettings
    let store: String
    let clock: any Clock<Duration>
    /// The time since the engine was created.
    let elapsed: @Sendable () -> Duration
    let logger: Logger
    let seed: UInt64
    let meter = LiveMeter()

    /// The position up to which all entries have been worked.
    var position = LogPosition.start
    var isFollowing = false
    var clients: [UInt64: LiveClient] = [:]
    /// The hubs, with the number of clients at each.
    var hubs: [ObjectIdentifier: (hub: any LiveHub, clients: Int)] = [:]
    var containers: [ContainerKey: LiveContainer] = [:]
    var nextGroup: UInt32 = 1
    /// The number of readings of records in progress.
    var readings = 0
    /// The tables that wait to be read.
    var waitingTables = TableTurns()
    /// The groups with clients that come back and have not caught up.
    var returning: [ContainerKey: Set<UInt32>] = [:]
    var isResuming = false
    /// The amount that has been written for these clients.
    var resumed = ResumeWeight()
    /// Whether the next reading includes the clients that were away for long.
    var isTurnOfFar = false
    /// How often each container was left for another reading of the log since its last turn.
    var postponed: [ContainerKey: Int] = [:]
    /// The callers that wait until the engine reaches a position.
    var waiters = PositionWaiters()
    var frames: [LiveGroupFrame] = []
    /// The latest `at` frame.
    var closing: (position: LogPosition, frame: LiveFrame)?
    var marks = EntryMarks()
    /// The texts written for the current change.
    var written = WrittenRecords()
    /// The amount of written frames that wait to be sent.
    private var weight = FrameWeight()
    /// The queries that end with the next frames to be sent.
    private var ending: [(LiveWaiter, LiveGroup)] = []
    /// The state of coalescing for the entries that are being read.
    var coalescing = Coalescing()
    var memory = 0
    /// The readers' shares of results, for the containers in which room is being made.
    var looked: [ContainerKey: ResultShares] = [:]
    /// How often the schema of each container has changed.
    var schemas: [ContainerKey: Int] = [:]
    var lines = QuietLines<String>()
    private let patience: StorePatience

    /// Creates an engine for `log`; `store` is the store's mark in tokens, and the secret `seed`
    /// protects hashes.
    package init(
        log: any ShardLog, shadow: any Shadow, writing: any LiveWriting, store: String,
        seed: UInt64, settings: LiveSettings = LiveSettings(), clock: any Clock<Duration>,
        logger: Logger
    ) {
        self.log = log
        self.shadow = shadow
        writer = FrameWriter(writing: writing)
        self.settings = settings
        self.store = store
        self.seed = seed
        self.clock = clock
        elapsed = clock.elapsing()
        self.logger = logger
        patience = StorePatience(clock: clock) { error in
            logger.error(
                "cannot follow the log for live clients; trying again",
                metadata: ["reason": "\(error)"])
        }
    }

    // MARK: Following

    /// Follows the log from its head until the task is cancelled.
    package func follow() async throws {
        let head = try await patience.attempt { [log] in try await log.head() }
        isFollowing = true
        advancePast(head)
        // Entries of a request whose end has not been read yet.
        var held: [FollowedEntry] = []
        while true {
            try Task.checkCancellation()
            if containers.isEmpty {
                held = []
                // There are no live queries.
                let head = try await patience.attempt { [log] in try await log.head() }
                // A client may have come meanwhile, as of the current position.
                guard containers.isEmpty else { continue }
                meter.show(behind: 0)
                try await advance(to: head)
                try await log.waitForGrowth(beyond: head)
                continue
            }
            do {
                let last = held.last?.position ?? position
                let entries = try await patience.attempt { [log] in
                    try await log.followedEntries(after: last, limit: LiveSettings.entriesPerRead)
                }
                if let first = entries.first?.position, first > last.next {
                    try await work(held[...])
                    held = []
                    end(
                        containers,
                        because: "the log was pruned before it was read for live clients")
                    advancePast(LogPosition(first.rawValue - 1))
                }
                held += entries
            } catch StorageError.unreadable(let entry) {
                try await work(held[...])
                held = []
                // It cannot be shown; the follower sets the entry aside and reports it.
                if entry.isChange { end(containers, because: "a change cannot be read") }
                advancePast(entry.position)
                continue
            }
            guard !held.isEmpty else {
                try await log.waitForGrowth(beyond: position)
                continue
            }
            let head = try await patience.attempt { [log] in try await log.head() }
            let whole = Self.wholeRequests(of: held, upTo: head)
            meter.show(behind: head.rawValue - min(head.rawValue, position.rawValue))
            try await work(held.prefix(whole))
            meter.show(behind: head.rawValue - min(head.rawValue, position.rawValue))
            held.removeFirst(whole)
        }
    }

    /// Returns how many of the entries belong to requests that have been read to their ends.
    ///
    /// A request becomes durable as a whole, so the last one ends at the head of the log.
    private static func wholeRequests(of entries: [FollowedEntry], upTo head: LogPosition) -> Int {
        guard let last = entries.last, last.position < head,
            entries.count < LiveSettings.mostHeld
        else { return entries.count }
        return entries.lastIndex { !$0.continuesRequest } ?? 0
    }

    private func work(_ entries: ArraySlice<FollowedEntry>) async throws {
        guard let last = entries.last else { return }
        for (index, entry) in zip(entries.indices, entries) {
            work(entry)
            let next = entries.index(after: index)
            let endsRequest = next == entries.endIndex || !entries[next].continuesRequest
            if weight.isFull && endsRequest || weight.isOverfull {
                marks.note(entry)
                try await advance(to: entry.position)
            }
        }
        marks.note(last)
        try await advance(to: last.position)
    }

    private func advancePast(_ position: LogPosition) {
        self.position = position
        waiters.resume(upTo: position)
    }

    /// Ends all groups of some containers because a change is missing; their results would be wrong
    /// from now on, unnoticed.
    private func end(_ containers: [ContainerKey: LiveContainer], because reason: String) {
        logger.error("ended live queries", metadata: ["reason": "\(reason)"])
        let error = APIError(.tryAgainLater, reason, retryAfter: 1)
        for container in containers.values {
            for group in container.groups.values { end(group, error, in: container) }
        }
    }

    /// Sends the frames of the entries up to `position`.
    private func advance(to position: LogPosition) async throws {
        finishCoalescing()
        guard position > self.position || !frames.isEmpty else { return }
        self.position = position
        if !frames.isEmpty {
            meter.count(frames: frames.count)
            for (hub, _) in hubs.values { hub.post([.deliver(frames, at, position)]) }
            frames.removeAll(keepingCapacity: true)
            endOnce()
        }
        weight.send()
        waiters.resume(upTo: position)
        beginResuming()
        for (hub, _) in hubs.values { await hub.room() }
    }

    // MARK: An entry

    private func work(_ entry: FollowedEntry) {
        guard let container = containers[entry.container],
            case .change(let logged, let isStale) = entry.body, !isStale
        else { return }
        guard let change = try? logged.change() else {
            return end([container.key: container], because: "a change cannot be read")
        }
        let took = clock.measure {
            tell(change, entry, in: container)
            show(change, entry, in: container)
            written = WrittenRecords()
        }
        meter.count(change: took)
        endRefused()
    }

    /// Ends the groups of users for whom too much was written for one change.
    func endRefused() {
        let refused = weight.refused
        weight.finishChange()
        for group in refused {
            guard let container = containers[group.query.subscription.container],
                container.groups[group.number] === group
            else { continue }
            end(
                group,
                APIError(
                    .quotaExceeded,
                    "the frames of one change for the user's queries take more than "
                        + "\(settings.bytesPerChange) bytes"), in: container)
        }
    }

    /// Writes a change for the groups of changes.
    private func tell(
        _ change: RecordChange, _ entry: FollowedEntry, in container: LiveContainer
    ) {
        let asked = asking(in: container) { () throws(DearChange) -> [LiveTold] in
            try container.groups(toldOf: change, appendedAt: entry.appendedAt)
        } of: {
            container.groups(mayBeTold: change)
        }
        guard let heard = asked else {
            return end(unasked: container.groups(mayBeTold: change), in: container)
        }
        for hearing in heard {
            let group = hearing.group
            // Clients whose queries have ended get no further frame.
            guard group.clients.count > group.ended.count, let user = admit(group) else { continue }
            var told = frame(of: change, entry, for: group, hearing.transition)
            told.position = entry.position
            told.except = group.ended
            if group.traits.coalesces {
                coalescing.replace(change.recordID, in: group, by: frames.count, &frames)
            }
            append(told, for: user)
            noteOnce(told, group)
        }
    }

    /// Returns a user of the group who has room for its frame of the current change; `nil` if there
    /// is none, and then the group ends.
    ///
    /// A group that others see too does not end because one of its users asks for too much.
    func admit(_ group: LiveGroup) -> UserID? {
        let owner = group.owner
        if weight.hasRoom(for: owner, most: settings.bytesPerChange) { return owner }
        for number in group.clients {
            guard let reader = clients[number]?.reader else { continue }
            // A server may ask for as much as it likes.
            guard case .user(let user) = reader else { return owner }
            if weight.hasRoom(for: user, most: settings.bytesPerChange) { return user }
        }
        weight.refused.append(group)
        return nil
    }

    func append(_ told: LiveGroupFrame, for user: UserID) {
        weight.add(told, for: user)
        frames.append(told)
    }

    /// Notes the queries that end with this frame.
    private func noteOnce(_ told: LiveGroupFrame, _ group: LiveGroup) {
        for waiter in group.once {
            guard let client = clients[waiter.client],
                told.frame(for: client.reader, on: client.device) != nil
            else { continue }
            group.once.remove(waiter)
            if endsWithOne(client, in: group) { group.ended.insert(waiter.client) }
            ending.append((waiter, group))
        }
    }

    /// Ends the queries of a single change that have been sent it.
    private func endOnce() {
        for (waiter, group) in ending {
            clients[waiter.client]?.queries[waiter.query]?.group = 0
            clients[waiter.client]?.queries[waiter.query]?.ended = position
            leave(group, waiter)
            group.ended = []
        }
        ending.removeAll()
    }

    /// Moves a record within the results that it belongs to, or belonged to.
    private func show(
        _ change: RecordChange, _ entry: FollowedEntry, in container: LiveContainer
    ) {
        let tableKey = LiveContainer.tableKey(of: change)
        guard let table = container.tables[tableKey] else { return }
        let name = LiveRecord(namedBy: change)
        let member = table.records[name]
        if change.isUnkept, member == nil { return }
        let later = change.keptAfter(entry.position, at: entry.appendedAt, base: member?.record)
            .map { container.granted($0, on: tableKey) }
        let isFirstForSome = table.note(readersOf: later)
        table.loading?.note(
            change.recordID, entry.position, later, most: LiveSettings.mostAside)
        let found = asking(in: container) { () throws(DearChange) -> [UInt32] in
            guard let later else { return [] }
            return try container.results(of: later, on: tableKey)
        } of: {
            container.heard(container.results(on: tableKey), by: later?.readers)
        }
        guard let matched = found else {
            let groups = container.results(on: tableKey)
            return end(unasked: groups.filter { $0.members != nil }, in: container)
        }
        var step = RecordStep(from: member?.record, to: later)
        let fates = LiveFates(of: change, step)
        var shown: [LiveGroup] = []
        let concerned = (member?.groups ?? []).merged(with: matched)
        container.fetch(concerned.lazy.map(\.number))
        for (number, wasMember, fits) in concerned {
            guard let group = container.groups[number], group.members != nil else { continue }
            let isMember = move(
                &step, wasMember: wasMember, fits: fits, fates.fate(for: group.reader), by: change,
                at: entry.position, in: group, of: container)
            if isMember { shown.append(group) }
        }
        table.records.replace(name, by: later, in: shown.map(\.number))
        if isFirstForSome { divideOrdered(on: tableKey, in: container) }
        bound(shown, in: container)
    }

    /// Replaces a record in one result, and writes the effect for its clients.
    ///
    /// - Returns: Whether the record is a member now.
    private func move(
        _ step: inout RecordStep, wasMember: Bool, fits: Bool, _ fate: LiveFate,
        by change: RecordChange, at position: LogPosition, in group: LiveGroup,
        of container: LiveContainer
    ) -> Bool {
        let outcome =
            group.members?.replace(
                in: &step, wasMember: wasMember, fits: fits, fate,
                showing: group.traits.keys) ?? ResultMembers.Outcome()
        let gone = wasMember ? step.earlier?.bytes ?? 0 : 0
        weigh(group, (outcome.isMember ? step.later?.bytes ?? 0 : 0) - gone, in: container)
        group.note(replaced: gone)
        if group.traits.coalesces {
            weight.addNote()
            coalescing.note(
                change.recordID, wasMember ? step.earlier : nil, fate, outcome.items?.all ?? [],
                in: group,
                of: container)
        } else if group.hasClients, let items = outcome.items, let user = admit(group),
            var told = told(items, of: group, by: change.origin)
        {
            told.position = position
            append(told, for: user)
        }
        return outcome.isMember
    }
}

extension LiveContainer.Loading {
    /// Puts aside the new state of a record while the table is being read.
    mutating func note(
        _ id: RecordID, _ position: LogPosition, _ record: LiveRecord?, most: Int
    ) {
        guard aside.count < most || aside[id] != nil else { return isTooFar = true }
        aside[id] = (position, record)
    }
}
