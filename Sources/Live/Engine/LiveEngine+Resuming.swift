import Logging
import Matching
import RelayModel
import Storage

extension LiveEngine {
    /// Notes that a client fell behind and is sent no more changes; `fences` are answers that it
    /// was not sent, because they would wrongly say that it was sent everything.
    package func fallBehind(
        _ number: UInt64, at lag: LiveLag, untold fences: [LiveFrame] = []
    ) {
        guard let client = clients[number] else { return }
        clients[number]?.behind = max(client.behind, lag)
        clients[number]?.fences += fences
        // The client may have caught up meanwhile.
        answerFences(of: number)
    }

    /// Sends a client that fell behind what happened since, once it has read what was under way.
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
            // Until it has caught up, its changes come from the log.
            group.once.remove(LiveWaiter(client: number, query: id))
            client.hub.post([.leave(number, group.number)])
            // A query that began while the client was behind was sent its result as of then.
            let since = max(since, declared.begun)
            enter(LiveWaiter(client: number, query: id, since: since), group, in: container)
        }
        if clients[number]?.waiting.isEmpty == true { clients[number]?.isCatchingUp = false }
        finishIfComplete(number)
    }

    /// Reopens the queries that ended with a change which the client was not sent.
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

    /// Reads the log for returning clients, once for all that wait.
    func beginResuming() {
        guard !isResuming, returning.contains(where: { !$0.value.isEmpty }) else { return }
        let ready = ready()
        guard !ready.isEmpty else { return }
        isResuming = true
        Task { await self.resume() }
    }

    /// Returns the loaded groups that have returning clients.
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

    /// Returns the readers of returning clients that have not been sent everything.
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

    /// Has clients begin anew if more entries would have to be read than the limit allows;
    /// positions have no gaps, so this is known without reading.
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

    /// Returns the groups for which the log is read next.
    ///
    /// Readings alternate between clients that were away briefly and all clients. So a client does
    /// not wait long because another one was away long, and none waits for ever.
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

    /// The number of entries that a client may have missed to count as away briefly.
    private static let nearEntries: UInt64 = 4096

    /// A group with returning clients, and the earliest position of these.
    private typealias Returning = (container: LiveContainer, group: LiveGroup, start: LogPosition)

    /// Returns whether the group still has returning clients, and its members are loaded.
    private func isComing(_ group: LiveGroup, _ container: LiveContainer) -> Bool {
        containers[container.key]?.groups[group.number] === group
            && (group.query.kind == .changes || group.members != nil)
            && group.waiting.contains { $0.since != nil }
    }

    /// Orders the groups so that no client waits for everything that another one is sent: by turns
    /// of the containers, and within each of them by turns of the users.
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

    /// Reads the log from `start` to the engine's position, and tells the waiting clients.
    ///
    /// The engine works on between the turns, and entries that arrive meanwhile are read, too.
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
            // Nothing suspends until the end of the turn, so all that is sent has one position.
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

    /// Reads on to the engine's position.
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
                // All entries up to there were pruned; later ones may exist.
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

    /// Sends the clients that wait for a group what they missed.
    ///
    /// - Returns: Whether all have been served; otherwise the turn has ended before.
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
            // A client that came during the reading, from before `start`, waits for the next one.
            guard let since = waiter.since, let client = clients[waiter.client], since >= start
            else { continue }
            let former = told.flatMap { $0.client == waiter.client ? $0 : nil }
            // Frames of changes are written once for all clients, but those of a result may not be.
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
            var news: [LiveFrame] = []
            if reset == nil {
                let bytes = telling.bytes
                let time = clock.measure {
                    news = frames(for: waiter, since, group, &telling, after: former)
                }
                resumed.add(telling.bytes - bytes, in: time, for: party)
                if !takesRoom(for: news, of: waiter.client) { reset = .tooFar }
            }
            if let reset {
                begin(anew: waiter, group, reset)
            } else {
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

    /// What a client was sent of a group for another query of its set; frames belong to the group,
    /// so what is sent for one query counts for all.
    private struct Told {
        let client: UInt64
        let since: LogPosition
        let isSome: Bool
    }

    /// Orders waiters by client, and those of one client by position, the earliest first.
    private static func precedes(_ left: LiveWaiter, _ right: LiveWaiter) -> Bool {
        guard left.client == right.client else { return left.client < right.client }
        let places = (left.since ?? .start, right.since ?? .start)
        return places.0 == places.1 ? left.query < right.query : places.0 < places.1
    }

    /// Ends a query of a single change that has been sent it.
    private func endIfOnce(_ waiter: LiveWaiter, _ group: LiveGroup) {
        guard clients[waiter.client]?.queries[waiter.query]?.query.isOnce == true else { return }
        clients[waiter.client]?.queries[waiter.query]?.group = 0
        clients[waiter.client]?.queries[waiter.query]?.finished = position
        leave(group, waiter)
    }

    /// Stops tracking a group for resuming if no returning client waits for it.
    func forgetIfAllTold(_ group: LiveGroup) {
        guard !returning.isEmpty, !group.waiting.contains(where: { $0.since != nil }) else {
            return
        }
        let key = group.query.subscription.container
        returning[key]?.remove(group.number)
        if returning[key]?.isEmpty == true { returning[key] = nil }
    }

    /// Tells a client that it cannot go on from its position.
    private func begin(anew waiter: LiveWaiter, _ group: LiveGroup, _ reason: LiveReset) {
        note(reason, of: group)
        let isOfChanges = group.query.kind == .changes
        let reset = FrameWriter.reset(
            group.number, reason, from: isOfChanges ? waiter.since : nil, to: position)
        welcome(waiter, group, [reset], isOfChanges ? nil : result(of: group, for: waiter))
    }

    /// Counts queries of a group that begin anew, and logs them; the number of lines is limited,
    /// because clients choose how often they begin anew.
    func note(_ reason: LiveReset, of group: LiveGroup, queries: Int = 1) {
        meter.count(reset: reason, of: queries)
        let container = "\(group.query.place.container)"
        let kind = "\(container) \(reason.rawValue)"
        guard let unlogged = lines.take(kind, at: elapsed()) else { return }
        logger.info(
            "live queries start over",
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
            // Each change is sent once: those since a later position have been sent already.
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
