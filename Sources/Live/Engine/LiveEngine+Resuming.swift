import Logging
import Matching
import RelayModel
import Storage

extension LiveEngine {
    /// Notes that a client fell behind, and is sent nothing more of changes; `fences` are answers
    /// that it was not sent, because they would say that it was.
    package func fallBehind(
        _ number: UInt64, at lag: LiveLag, untold fences: [LiveFrame] = []
    ) {
        guard let client = clients[number] else { return }
        clients[number]?.behind = max(client.behind, lag)
        clients[number]?.fences += fences
        // It may have caught up meanwhile.
        answerFences(of: number)
    }

    /// Tells a client that fell behind, and has read what was under way, what happened since.
    package func catchUp(_ number: UInt64, from lag: LiveLag) {
        let since = lag.position
        clients[number]?.caughtUp = lag
        takeUp(number, after: since)
        guard let client = clients[number], let container = containers[client.container] else {
            clients[number]?.hub.post([.caughtUp(number)])
            return finishIfComplete(number)
        }
        clients[number]?.isCatchingUp = true
        clients[number]?.isToldComplete = false
        client.hub.post([.caughtUp(number)])
        let away = client.queries.sorted { $0.key < $1.key }
            .filter { id, declared in
                !client.waiting.contains(id) && container.groups[declared.group] != nil
            }
        let queries = away.map { id, declared -> JSONValue in
            [
                "id": .string(id), "group": .integer(Int64(declared.group)),
                "fingerprint": .string(declared.fingerprint), "isResumed": true,
            ]
        }
        client.hub.post([
            .send(number, [client.state(.bootstrapping, queries)])
        ])
        for (id, declared) in away {
            guard let group = container.groups[declared.group] else { continue }
            group.clients.remove(number)
            // What comes before it has caught up is told from the log.
            group.once.remove(LiveWaiter(client: number, query: id))
            client.hub.post([.leave(number, group.number)])
            // What was begun while it was behind went out as it was then.
            let since = max(since, declared.begun)
            enter(LiveWaiter(client: number, query: id, since: since), group, in: container)
        }
        if clients[number]?.waiting.isEmpty == true { clients[number]?.isCatchingUp = false }
        finishIfComplete(number)
    }

    /// Takes up the queries that ended with a change which the client was not sent.
    private func takeUp(_ number: UInt64, after since: LogPosition) {
        guard let client = clients[number], client.schema == schema(of: client.container) else {
            return
        }
        for (id, declared) in client.queries {
            guard let ended = declared.ended, ended > since,
                let group = group(
                    for: declared.query, declared.grant, reader: client.reader,
                    in: container(of: client.container))
            else { continue }
            clients[number]?.queries[id]?.group = group.number
            clients[number]?.queries[id]?.ended = nil
        }
    }

    /// Reads for those who come back what happened since, once for all who wait.
    func beginResuming() {
        guard !isResuming, returning.contains(where: { !$0.value.isEmpty }) else { return }
        let ready = ready()
        guard !ready.isEmpty else { return }
        isResuming = true
        Task { await self.resume() }
    }

    /// The groups that are loaded and to which somebody comes back.
    private func ready() -> [(LiveContainer, LiveGroup)] {
        returning.flatMap { key, groups -> [(LiveContainer, LiveGroup)] in
            guard let container = containers[key] else { return [] }
            return groups.sorted().compactMap { number in
                guard let group = container.groups[number],
                    group.waiting.contains(where: { $0.since != nil }),
                    group.query.kind == .changes || group.members != nil
                else { return nil }
                return (container, group)
            }
        }
    }

    private func resume() async {
        refuseTooFar()
        resumed.beginReading()
        let (groups, isOfAll) = nextGroups()
        do {
            if let start = groups.map(\.start).min() {
                try await resume(groups, from: start, isOfAll: isOfAll)
            }
        } catch {
            say(error, reading: "the log")
            for (container, group, _) in groups where isComing(group, container) {
                end(
                    group, APIError(.tryAgainLater, "the log cannot be read now", retryAfter: 5),
                    in: container)
            }
        }
        resumed.finishReading(for: waitingParties())
        isResuming = false
        beginResuming()
    }

    /// Those who come back, and have not been told everything.
    private func waitingParties() -> Set<ResumeWeight.Party> {
        var parties: Set<ResumeWeight.Party> = []
        for (key, numbers) in returning {
            for waiter in numbers.compactMap({ containers[key]?.groups[$0] }).flatMap(\.waiting) {
                guard let reader = clients[waiter.client]?.reader else { continue }
                parties.insert(ResumeWeight.Party(container: key, reader: reader))
            }
        }
        return parties
    }

    /// Has those begin anew for whom more would have to be read than ever is: positions have no
    /// gaps, so that it takes no reading to know them.
    private func refuseTooFar() {
        for (_, group) in ready() {
            for waiter in group.waiting {
                guard let since = waiter.since,
                    position.rawValue - min(since.rawValue, position.rawValue)
                        > settings.entriesReadPerResume
                else { continue }
                begin(anew: waiter, group, .tooFar)
                finishIfComplete(waiter.client)
            }
            forgetIfAllTold(group)
        }
    }

    /// The groups for which the log is read next.
    ///
    /// By turns those of the clients who were away for a short while only, and all: nobody waits
    /// for long because somebody else was away for long, and nobody waits for ever.
    private func nextGroups() -> (groups: [Returning], isOfAll: Bool) {
        let all = ready().compactMap { container, group in
            group.waiting.compactMap(\.since).min().map { (container, group, $0) }
        }
        let near = all.filter { position.rawValue - $0.2.rawValue <= Self.nearEntries }
        isTurnOfFar = !isTurnOfFar && near.count < all.count
        let isOfAll = isTurnOfFar || near.isEmpty
        let groups: [Returning] = isOfAll ? all : near
        return (groups, isOfAll)
    }

    /// Entries that are read at once for those who were away for a short while only.
    private static let nearEntries: UInt64 = 4096

    /// A group to which somebody comes back, and from where on the first who does.
    private typealias Returning = (container: LiveContainer, group: LiveGroup, start: LogPosition)

    /// Whether there is a group that somebody waits for to come back to, and what is shown is read.
    private func isComing(_ group: LiveGroup, _ container: LiveContainer) -> Bool {
        containers[container.key]?.groups[group.number] === group
            && (group.query.kind == .changes || group.members != nil)
            && group.waiting.contains { $0.since != nil }
    }

    /// So that nobody waits for all that somebody else is told: by turns of the containers, and in
    /// one of the users whose queries they are.
    private func inTurns(_ groups: [Returning]) -> [Returning] {
        var placed: [(place: Int, weight: Int, returning: Returning)] = []
        for (key, groups) in Dictionary(grouping: groups, by: \.container.key) {
            var counts: [UserID: Int] = [:]
            let ofContainer = groups.map { returning -> (place: Int, returning: Returning) in
                let owner = returning.group.owner
                defer { counts[owner, default: 0] += 1 }
                return (counts[owner, default: 0], returning)
            }.sorted {
                ($0.place, $0.returning.group.number) < ($1.place, $1.returning.group.number)
            }
            let weight = resumed.bytes(for: key)
            for (place, element) in ofContainer.enumerated() {
                placed.append((place, weight, element.returning))
            }
        }
        return placed.sorted { ($0.place, $0.weight) < ($1.place, $1.weight) }.map(\.returning)
    }

    /// Reads the log from `start` to where the engine stands, and tells each who waits.
    ///
    /// What else there is has its turn in between; what has come then is read, too.
    private func resume(
        _ groups: [Returning], from start: LogPosition, isOfAll: Bool
    ) async throws {
        var reading = PastReading(after: start, postponed: postponed)
        for (key, groups) in Dictionary(grouping: groups, by: \.container.key) {
            reading.past[key] = PastChanges(for: Set(groups.map(\.group.number)))
        }
        var rest = inTurns(groups)[...]
        while !rest.isEmpty, !resumed.isReadingOver {
            try await read(&reading)
            // From here to the end of the turn nothing is waited for: what is told is as of one
            // position.
            let pruned = reading.first.map { LogPosition($0.rawValue - 1) } ?? position
            resumed.beginTurn()
            while let (container, group, _) = rest.first, !resumed.isTurnOver {
                if isComing(group, container), let past = reading.past[container.key] {
                    guard tell(group, past, prunedTo: pruned, from: start, in: container) else {
                        break
                    }
                }
                rest.removeFirst()
            }
            for (hub, _) in hubs.values { await hub.room() }
            await Task.yield()
        }
        let untold = Set(rest.map(\.container.key))
        postponed = reading.postponed.filter { key, _ in
            let hadTurn = isOfAll && reading.past[key] != nil && !untold.contains(key)
            return returning[key] != nil && !hadTurn
        }
        meter.countResume(entries: reading.count)
    }

    /// Reads on to where the engine stands.
    private func read(_ reading: inout PastReading) async throws {
        while reading.at < position {
            let entries: [FollowedEntry]
            let reached = position
            do {
                entries = try await log.followedEntries(
                    after: reading.at, limit: LiveSettings.entriesPerRead)
            } catch StorageError.unreadable(let entry) {
                reading.skip(entry)
                continue
            }
            guard let first = entries.first, let last = entries.last else {
                // All until then was pruned; what came since may be there.
                (reading.first, reading.at) = (LogPosition(reached.rawValue + 1), reached)
                continue
            }
            reading.note(next: first.position)
            reading.at = last.position
            reading.count += entries.count
            for entry in entries { add(entry, to: &reading.past) }
            reading.postpone(beyond: settings.bytesPerReading)
        }
    }

    private func add(_ entry: FollowedEntry, to past: inout [ContainerKey: PastChanges]) {
        guard let container = containers[entry.container], past[entry.container] != nil else {
            return
        }
        let isAdded = asking(in: container) { () throws(DearChange) -> Bool in
            try past[entry.container]?.add(entry, in: container, settings)
            return true
        } of: {
            container.groups(asked: entry)
        }
        if isAdded == nil { past[entry.container]?.giveUp() }
    }

    /// Tells those who wait for a group.
    ///
    /// - Returns: whether all have been told, and not only as many as there is room for.
    private func tell(
        _ group: LiveGroup, _ past: PastChanges, prunedTo: LogPosition,
        from start: LogPosition, in container: LiveContainer
    ) -> Bool {
        var telling = Telling(group, past, upTo: position) { past in
            self.frame(
                of: past.change, past.entry, for: group, past.transitions[group.number])
        }
        var told: Told?
        for waiter in group.waiting.sorted(by: Self.precedes) {
            // Who came while the log was read, and has to be told more, stands in line.
            guard let since = waiter.since, let client = clients[waiter.client], since >= start
            else { continue }
            let former = told.flatMap { $0.client == waiter.client ? $0 : nil }
            // Changes are written once for all; of a result each may be told something else.
            if former == nil, group.query.kind == .result, resumed.isTurnOver { return false }
            let party = ResumeWeight.Party(container: container.key, reader: client.reader)
            var reset = past.reset(of: group, since: since)
            if reset == nil, since < prunedTo { reset = .expired }
            if reset == nil, telling.wasPersonal(since: since) { reset = .readers }
            if reset == nil, former == nil,
                !resumed.hasRoom(for: party, most: settings.bytesToldPerResume)
            {
                reset = .tooFar
            }
            if let reset {
                begin(anew: waiter, group, reset)
            } else {
                let bytes = telling.bytes
                var news: [LiveFrame] = []
                let time = clock.measure {
                    news = frames(for: waiter, since, group, &telling, after: former)
                }
                resumed.add(telling.bytes - bytes, in: time, for: party)
                welcome(waiter, group, news)
                let isSome = former?.isSome == true || !news.isEmpty
                if isSome, group.query.kind == .changes { endIfOnce(waiter, group) }
                told = Told(client: waiter.client, since: since, isSome: isSome)
            }
            clients[waiter.client]?.isCatchingUp = false
            finishIfComplete(waiter.client)
        }
        forgetIfAllTold(group)
        return true
    }

    /// What a client has been told of a group by another query of its set: frames are a group's, so
    /// that what is told of one query is told of all that it shows.
    private struct Told {
        let client: UInt64
        let since: LogPosition
        let isSome: Bool
    }

    /// Queries of one client stand together, and what has to be told most comes first.
    private static func precedes(_ left: LiveWaiter, _ right: LiveWaiter) -> Bool {
        guard left.client == right.client else { return left.client < right.client }
        let places = (left.since ?? .start, right.since ?? .start)
        return places.0 == places.1 ? left.query < right.query : places.0 < places.1
    }

    /// Ends a query of one change that has been told it.
    private func endIfOnce(_ waiter: LiveWaiter, _ group: LiveGroup) {
        guard clients[waiter.client]?.queries[waiter.query]?.query.isOnce == true else { return }
        clients[waiter.client]?.queries[waiter.query]?.group = 0
        clients[waiter.client]?.queries[waiter.query]?.finished = position
        leave(group, waiter)
    }

    /// Whether all of a client's queries that a group shows end with one change.
    func endsWithOne(_ client: LiveClient, in group: LiveGroup) -> Bool {
        client.queries.values.allSatisfy { $0.group != group.number || $0.query.isOnce }
    }

    /// Looks no more for those who come back to a group where nobody does.
    func forgetIfAllTold(_ group: LiveGroup) {
        guard !returning.isEmpty, !group.waiting.contains(where: { $0.since != nil }) else {
            return
        }
        let key = group.query.subscription.container
        returning[key]?.remove(group.number)
        if returning[key]?.isEmpty == true { returning[key] = nil }
    }

    /// Tells a client that it cannot go on from where it stood.
    private func begin(anew waiter: LiveWaiter, _ group: LiveGroup, _ reason: LiveReset) {
        note(reason, of: group)
        let isOfChanges = group.query.kind == .changes
        let reset = FrameWriter.reset(
            group.number, reason, from: isOfChanges ? waiter.since : nil, to: position)
        welcome(waiter, group, [reset], isOfChanges ? nil : result(of: group, for: waiter))
    }

    /// Counts queries of a group that begin anew, and says so in a line: one in a while, because
    /// clients choose how often they do.
    func note(_ reason: LiveReset, of group: LiveGroup, queries: Int = 1) {
        meter.count(reset: reason, of: queries)
        let container = "\(group.query.place.container)"
        let kind = "\(container) \(reason.rawValue)"
        guard let unlogged = lines.take(kind, at: elapsed()) else { return }
        logger.info(
            "live queries begin anew",
            metadata: [
                "container": "\(container)", "group": "\(group.number)",
                "queries": "\(queries)", "reason": "\(reason.rawValue)",
                "unloggedBefore": "\(unlogged)",
            ])
    }

    private func frames(
        for waiter: LiveWaiter, _ since: LogPosition, _ group: LiveGroup, _ telling: inout Telling,
        after former: Told?
    ) -> [LiveFrame] {
        guard let client = clients[waiter.client] else { return [] }
        switch group.query.kind {
        case .changes:
            // Each change once: those since another place are among what was told before.
            guard former == nil else { return [] }
            let frames = telling.changes(since: since).compactMap {
                $0.frame(for: client.reader, on: client.device)
            }
            return endsWithOne(client, in: group) ? Array(frames.prefix(1)) : frames
        case .notifications: return []
        case .result:
            guard former?.since != since else { return [] }
            return telling.items(since: since, for: client.reader, by: writer).map { [$0] } ?? []
        }
    }
}
