import Logging
import Matching
package import RelayModel
import Storage

extension LiveEngine {
    /// Tells a client that fell behind, and has read what was under way, what happened since.
    package func catchUp(_ number: UInt64, from since: LogPosition) {
        takeUp(number, after: since)
        guard let client = clients[number], let container = containers[client.container] else {
            clients[number]?.hub.post([.caughtUp(number)])
            return
        }
        clients[number]?.isLagging = true
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
            client.hub.post([.leave(number, group.number)])
            // What was begun while it was behind went out as it was then.
            let since = max(since, declared.begun)
            enter(LiveWaiter(client: number, query: id, since: since), group, in: container)
        }
        if clients[number]?.waiting.isEmpty == true { clients[number]?.isLagging = false }
        finishIfComplete(number)
    }

    /// Takes up the queries that ended with a change which the client was not sent.
    private func takeUp(_ number: UInt64, after since: LogPosition) {
        guard let client = clients[number] else { return }
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
        let groups = nextGroups()
        do {
            if let start = groups.map(\.start).min() {
                try await resume(groups.map { ($0.container, $0.group) }, from: start)
            }
        } catch {
            logger.error("could not read the log", metadata: ["reason": "\(error)"])
            for (container, group, _) in groups where isThere(group, container) {
                end(
                    group, APIError(.tryAgainLater, "the log cannot be read now", retryAfter: 5),
                    in: container)
            }
        }
        isResuming = false
        beginResuming()
    }

    /// Has those begin anew for whom more would have to be read than ever is: positions have no
    /// gaps, so that it takes no reading to know them.
    private func refuseTooFar() {
        for (container, group) in ready() {
            for waiter in group.waiting {
                guard let since = waiter.since,
                    position.rawValue - min(since.rawValue, position.rawValue)
                        > settings.entriesReadPerResume
                else { continue }
                begin(anew: waiter, group, .tooFar)
                finishIfComplete(waiter.client)
            }
            forgetIfAllTold(group, in: container)
        }
    }

    /// The groups for which the log is read next.
    ///
    /// By turns those of the clients who were away for a short while only, and all: nobody waits
    /// for long because somebody else was away for long, and nobody waits for ever.
    private func nextGroups()
        -> [(container: LiveContainer, group: LiveGroup, start: LogPosition)]
    {
        let all = ready().compactMap { container, group in
            group.waiting.compactMap(\.since).min().map { (container, group, $0) }
        }
        let near = all.filter { position.rawValue - $0.2.rawValue <= Self.nearEntries }
        isTurnOfFar = !isTurnOfFar && near.count < all.count
        return isTurnOfFar || near.isEmpty ? all : near
    }

    /// Entries that are read at once for those who were away for a short while only.
    private static let nearEntries: UInt64 = 4096

    private func isThere(_ group: LiveGroup, _ container: LiveContainer) -> Bool {
        containers[container.key]?.groups[group.number] === group
    }

    /// Reads the log from `start` to where the engine stands, and tells each who waits.
    private func resume(
        _ groups: [(container: LiveContainer, group: LiveGroup)], from start: LogPosition
    ) async throws {
        var past: [ContainerKey: PastChanges] = [:]
        for (key, groups) in Dictionary(grouping: groups, by: \.container.key) {
            past[key] = PastChanges(for: Set(groups.map(\.group.number)))
        }
        var at = start
        var first: LogPosition?
        var count = 0
        while at < position {
            let entries: [FollowedEntry]
            let reached = position
            do {
                entries = try await log.followedEntries(
                    after: at, limit: LiveSettings.entriesPerRead)
            } catch StorageError.unreadable(let entry) {
                first = first ?? entry.position
                at = entry.position
                continue
            }
            guard let last = entries.last else {
                // All until then was pruned; what came since may be there.
                (first, at) = (LogPosition(reached.rawValue + 1), reached)
                continue
            }
            first = first ?? entries.first?.position
            at = last.position
            count += entries.count
            for entry in entries { add(entry, to: &past) }
        }
        // From here to the end nothing is waited for: what is told is as of one position.
        let pruned = first.map { LogPosition($0.rawValue - 1) } ?? position
        meter.countResume(entries: count)
        for (container, group) in groups where isThere(group, container) {
            guard let past = past[container.key] else { continue }
            tell(group, past, prunedTo: pruned, from: start, in: container)
        }
    }

    private func add(_ entry: FollowedEntry, to past: inout [ContainerKey: PastChanges]) {
        guard let container = containers[entry.container], past[entry.container] != nil else {
            return
        }
        do throws(DearChange) {
            try past[entry.container]?.add(entry, in: container, settings)
        } catch {
            end(error, in: container)
        }
    }

    private func tell(
        _ group: LiveGroup, _ past: PastChanges, prunedTo: LogPosition,
        from start: LogPosition, in container: LiveContainer
    ) {
        var telling = Telling(group, past, upTo: position) { past in
            self.frame(
                of: past.change, past.entry, for: group, past.transitions[group.number])
        }
        var told: Told?
        for waiter in group.waiting.sorted(by: Self.precedes) {
            // Who came while the log was read, and has to be told more, stands in line.
            guard let since = waiter.since, clients[waiter.client] != nil, since >= start else {
                continue
            }
            var reset = past.reset(of: group, since: since)
            if reset == nil, since < prunedTo { reset = .expired }
            if let reset {
                begin(anew: waiter, group, reset)
            } else {
                let former = told.flatMap { $0.client == waiter.client ? $0 : nil }
                let news = frames(for: waiter, since, group, &telling, after: former)
                welcome(waiter, group, news)
                let isSome = former?.isSome == true || !news.isEmpty
                if isSome, group.query.kind == .changes { endIfOnce(waiter, group) }
                told = Told(client: waiter.client, since: since, isSome: isSome)
            }
            clients[waiter.client]?.isLagging = false
            finishIfComplete(waiter.client)
        }
        forgetIfAllTold(group, in: container)
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
        leave(group, waiter)
    }

    /// Whether all of a client's queries that a group shows end with one change.
    private func endsWithOne(_ client: LiveClient, in group: LiveGroup) -> Bool {
        client.queries.values.allSatisfy { $0.group != group.number || $0.query.isOnce }
    }

    private func forgetIfAllTold(_ group: LiveGroup, in container: LiveContainer) {
        guard !group.waiting.contains(where: { $0.since != nil }) else { return }
        returning[container.key]?.remove(group.number)
        if returning[container.key]?.isEmpty == true { returning[container.key] = nil }
    }

    /// Tells a client that it cannot go on from where it stood.
    private func begin(anew waiter: LiveWaiter, _ group: LiveGroup, _ reason: LiveReset) {
        meter.count(reset: reason)
        logger.info(
            "a live client begins anew",
            metadata: ["group": "\(group.number)", "reason": "\(reason.rawValue)"])
        let isOfChanges = group.query.kind == .changes
        let reset = FrameWriter.reset(
            group.number, reason, from: isOfChanges ? waiter.since : nil, to: position)
        welcome(waiter, group, [reset], isOfChanges ? nil : result(of: group, for: waiter))
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
