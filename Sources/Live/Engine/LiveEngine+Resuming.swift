import Logging
import Matching
package import RelayModel
import Storage

/// An entry of the log, as those who come back need it.
struct PastEntry {
    let entry: FollowedEntry
    let change: RecordChange
}

extension LiveEngine {
    /// Tells a client that fell behind, and has read what was under way, what happened since.
    package func catchUp(_ number: UInt64, from since: LogPosition) {
        guard let client = clients[number], let container = containers[client.container] else {
            clients[number]?.hub.post([.caughtUp(number)])
            return
        }
        clients[number]?.isLagging = true
        clients[number]?.isToldComplete = false
        client.hub.post([.caughtUp(number)])
        let away = client.queries.sorted { $0.key < $1.key }
            .filter { !client.waiting.contains($0.key) && $0.value.group != 0 }
        client.hub.post([.send(number, [state(of: away, client)])])
        for (id, declared) in away {
            guard let group = container.groups[declared.group] else { continue }
            group.clients.remove(number)
            client.hub.post([.leave(number, group.number)])
            enter(LiveWaiter(client: number, query: id, since: since), group, in: container)
        }
        finishIfComplete(number)
    }

    /// Says that queries go on from where they stood, and are on their way.
    private func state(
        of queries: [(key: String, value: LiveClient.Declared)], _ client: LiveClient
    ) -> LiveFrame {
        LiveFrame([
            "type": "state", "version": .integer(client.version), "state": "bootstrapping",
            "isEmpty": .bool(client.queries.isEmpty),
            "queries": .array(
                queries.map { id, declared in
                    [
                        "id": .string(id), "group": .integer(Int64(declared.group)),
                        "fingerprint": .string(declared.fingerprint), "isResumed": true,
                    ]
                }),
        ])
    }

    /// Reads for those who come back what happened since, once for all who wait.
    func beginResuming() {
        guard !isResuming, returning.contains(where: { !$0.value.isEmpty }) else { return }
        let ready = ready()
        guard !ready.isEmpty else { return }
        isResuming = true
        Task { await self.resume() }
    }

    /// Those who come back to groups that are loaded.
    private func ready() -> [(LiveContainer, LiveGroup)] {
        returning.flatMap { key, groups -> [(LiveContainer, LiveGroup)] in
            guard let container = containers[key] else { return [] }
            return groups.sorted().compactMap { number in
                guard let group = container.groups[number],
                    group.query.kind == .changes || group.members != nil
                else { return nil }
                return (container, group)
            }
        }
    }

    private func resume() async {
        let start = ready().flatMap(\.1.waiting).compactMap(\.since).min()
        do {
            if let start { try await resume(from: start) }
        } catch {
            logger.error("could not read the log", metadata: ["reason": "\(error)"])
            for (container, group) in ready() {
                end(
                    group, APIError(.tryAgainLater, "the log cannot be read now", retryAfter: 5),
                    in: container)
            }
        }
        isResuming = false
        beginResuming()
    }

    /// Reads the log from `start` to where the engine stands, and tells each who waits.
    private func resume(from start: LogPosition) async throws {
        var past: [PastEntry] = []
        var at = start
        var first: LogPosition?
        var isTooFar = false
        while at < position {
            let entries: [FollowedEntry]
            do {
                entries = try await log.followedEntries(
                    after: at, limit: LiveSettings.entriesPerRead)
            } catch StorageError.unreadable(let entry) {
                first = first ?? entry.position
                at = entry.position
                continue
            }
            guard let last = entries.last else { break }
            first = first ?? entries.first?.position
            at = last.position
            for entry in entries where containers[entry.container] != nil {
                guard case .change(let logged, let isStale) = entry.body, !isStale,
                    let change = try? logged.change()
                else { continue }
                past.append(PastEntry(entry: entry, change: change))
            }
            if past.count > settings.entriesPerResume {
                isTooFar = true
                break
            }
        }
        // From here to the end nothing is waited for: what is told is as of one position.
        let reached = position
        past.removeAll { $0.entry.position > reached }
        let pruned = first.map { LogPosition($0.rawValue - 1) } ?? position
        meter.countResume(entries: past.count)
        for (container, group) in ready() {
            tell(group, past, prunedTo: pruned, isTooFar: isTooFar, from: start, in: container)
        }
    }

    private func tell(
        _ group: LiveGroup, _ past: [PastEntry], prunedTo: LogPosition, isTooFar: Bool,
        from start: LogPosition, in container: LiveContainer
    ) {
        var telling = Telling(group, past, container, at: position)
        var left = false
        for waiter in group.waiting.sorted(by: { $0.client < $1.client }) {
            guard let since = waiter.since, clients[waiter.client] != nil else { continue }
            // Who came while the log was read stands in line.
            guard since >= start else {
                left = true
                continue
            }
            if isTooFar || since < prunedTo {
                begin(anew: waiter, group, isTooFar ? .tooFar : .expired)
            } else {
                welcome(waiter, group, frames(for: waiter, since, group, &telling))
            }
            clients[waiter.client]?.isLagging = false
            finishIfComplete(waiter.client)
        }
        if !left { returning[container.key]?.remove(group.number) }
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
        welcome(waiter, group, [reset] + (isOfChanges ? [] : result(of: group, for: waiter)))
    }

    private func frames(
        for waiter: LiveWaiter, _ since: LogPosition, _ group: LiveGroup, _ telling: inout Telling
    ) -> [LiveFrame] {
        guard let client = clients[waiter.client] else { return [] }
        switch group.query.kind {
        case .changes:
            return telling.changes(since: since).compactMap { past in
                frame(of: past.change, past.entry, for: group).frame(
                    for: client.reader, on: client.device)
            }
        case .result:
            let items = telling.items(since: since, of: group)
            let told = readable(items, of: group, for: client.reader)
            return writer.items(told, of: group.query, group.number).map { [$0] } ?? []
        }
    }
}

/// What those who come back to one group are told: worked out once for all of the same place.
struct Telling {
    private let shelf: LiveContainer.Shelf?
    private let container: LiveContainer
    private let group: LiveGroup
    private let past: [PastEntry]
    private var entries: [PastEntry]?
    private var items: [LogPosition: [LiveItem]] = [:]

    init(
        _ group: LiveGroup, _ past: [PastEntry], _ container: LiveContainer,
        at position: LogPosition
    ) {
        self.group = group
        self.container = container
        shelf = LiveContainer.shelf(of: group.query)
        self.past = past
    }

    /// The changes that the group is told, after a position.
    mutating func changes(since: LogPosition) -> ArraySlice<PastEntry> {
        let container = container
        let group = group
        let told =
            entries
            ?? past.filter { past in
                guard past.entry.container == container.key,
                    let groups = try? container.groups(
                        toldOf: past.change, appendedAt: past.entry.appendedAt)
                else { return false }
                return groups.contains { $0 === group }
            }
        entries = told
        let start = told.firstIndex { $0.entry.position > since } ?? told.endIndex
        return told[start...]
    }

    /// What has become of the group's result since a position.
    mutating func items(since: LogPosition, of group: LiveGroup) -> [LiveItem] {
        if let known = items[since] { return known }
        let found = difference(since: since, of: group)
        items[since] = found
        return found
    }

    private func difference(since: LogPosition, of group: LiveGroup) -> [LiveItem] {
        guard let shelf, let members = group.members else { return [] }
        var touched: [RecordID: LiveRecord?] = [:]
        for past in past
        where past.entry.position > since && past.entry.container == container.key {
            let change = past.change
            guard LiveContainer.shelf(of: change) == shelf, touched[change.recordID] == nil else {
                continue
            }
            let before = change.keptBefore(past.entry.position, at: past.entry.appendedAt)
            let wasMember = before.flatMap { record in
                try? container.results(of: record, on: shelf).contains(group.number)
            }
            touched.updateValue(wasMember == true ? before : nil, forKey: change.recordID)
        }
        return members.difference(since: touched, showing: group.query.desiredKeys)
    }
}
