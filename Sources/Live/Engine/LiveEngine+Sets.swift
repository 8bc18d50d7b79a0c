import Logging
package import RelayModel
import Storage

extension LiveEngine {
    // MARK: Clients

    /// Adds a client; `number` is unique among the clients of all hubs.
    package func connect(
        _ number: UInt64, at hub: any LiveHub, of container: ContainerKey, as reader: LiveReader,
        on device: DeviceID? = nil
    ) {
        hubs[ObjectIdentifier(hub), default: (hub, 0)].clients += 1
        clients[number] = LiveClient(
            hub: hub, container: container, reader: reader, device: device)
        meter.show(clients: clients.count)
    }

    /// Removes a client, and its queries from their groups.
    package func disconnect(_ number: UInt64) {
        guard let client = clients.removeValue(forKey: number) else { return }
        let container = containers[client.container]
        for (id, declared) in client.queries {
            guard let group = container?.groups[declared.group] else { continue }
            leave(group, LiveWaiter(client: number, query: id), isLast: true)
        }
        container?.readers[number] = nil
        let place = ObjectIdentifier(client.hub)
        hubs[place]?.clients -= 1
        if hubs[place]?.clients == 0 { hubs[place] = nil }
        meter.show(clients: clients.count)
    }

    /// The numbers of clients, of groups, and of clients that lag, for metrics and operators.
    package var counts: (clients: Int, groups: Int, lagging: Int) {
        (
            clients.count, containers.values.reduce(0) { $0 + $1.groups.count },
            clients.values.count { $0.isLagging }
        )
    }

    // MARK: Sets

    /// Returns the version of the client's current set.
    package func version(of number: UInt64) -> Int64? { clients[number]?.version }

    /// Returns the client's current queries, by name.
    package func queries(of number: UInt64) -> [String: LiveQuery] {
        (clients[number]?.queries ?? [:]).filter { !$0.key.hasPrefix(LiveWaiter.getMark) }
            .mapValues(\.query)
    }

    /// Returns the client's current set as it was declared; `nil` if there is none.
    ///
    /// It includes queries whose end the client has not heard of: those that ended after `place`,
    /// or that ended before a set later than `version` had been sent completely.
    package func declared(
        by number: UInt64, after place: LogPosition?, told version: Int64 = .max
    ) -> LiveSet? {
        guard let client = clients[number], client.version > 0, let schema = client.schema else {
            return nil
        }
        let queries = client.queries.filter { id, declared in
            let end = max(declared.ended ?? .start, declared.finished ?? .start)
            let isLater = declared.finished != nil && declared.declaration.version > version
            let isUnheard = end > place ?? .start || isLater
            return (declared.group != 0 || isUnheard) && !id.hasPrefix(LiveWaiter.getMark)
        }.map { id, declared in
            var query = DeclaredQuery(
                id: id, declared.query, grant: declared.grant, fingerprint: declared.fingerprint,
                since: declared.declaration.since, reset: declared.declaration.reset)
            query.declaration = declared.declaration
            return query
        }
        return LiveSet(version: client.version, queries, removing: nil, under: schema)
    }

    /// Applies an edit as a whole; queries that are not in it go on undisturbed.
    ///
    /// - Throws: ``RelayModel/APIError`` if the edit, or the current set, was read under a schema
    ///   that has changed since.
    package func declare(_ set: LiveSet, by number: UInt64) throws(APIError) {
        guard var client = clients[number] else { return }
        try check(set.schema, of: client.container)
        // Queries of the current set that would go on are no longer shown under a new schema.
        if let schema = client.schema { try check(schema, of: client.container) }
        try checkRoom(for: set.queries, of: client)
        let names = Set(set.queries.map(\.id))
        let removed =
            set.removed
            ?? client.queries.keys.filter {
                !names.contains($0) && !$0.hasPrefix(LiveWaiter.getMark)
            }
        if let superseded = client.superseded {
            client.hub.post([.send(number, [superseded])])
        }
        (client.version, client.schema) = (set.version, set.schema)
        client.isToldComplete = false
        clients[number] = client
        for id in removed { remove(id, of: number) }
        var kept: Set<String> = []
        for declared in set.queries {
            if clients[number]?.queries[declared.id]?.goesOn(as: declared) == true {
                kept.insert(declared.id)
            } else {
                remove(declared.id, of: number)
            }
        }
        let container = container(of: client.container)
        for declared in set.queries where !kept.contains(declared.id) {
            clients[number]?.queries[declared.id] = LiveClient.Declared(
                shown: declared.shown, group: 0,
                fingerprint: declared.fingerprint,
                declaration: declared.declaration
                    ?? DeclaredQuery.Declaration(
                        version: set.version, since: declared.since, reset: declared.reset))
            assign(declared, to: number, in: container)
        }
        tell(number, set, undisturbed: kept)
        let new = set.queries.filter { !kept.contains($0.id) }
        // All are added before the first begins, so that the reported progress is relative to them
        // all.
        clients[number]?.waiting.formUnion(new.map(\.id))
        // One log line for each reason: a set has a hundred queries, and may come at any time.
        var anew: [LiveReset: (group: LiveGroup, queries: Int)] = [:]
        for declared in new {
            guard let (reset, group) = begin(declared, for: number, in: container) else { continue }
            anew[reset] = (group, (anew[reset]?.queries ?? 0) + 1)
        }
        for (reset, told) in anew { note(reset, of: told.group, queries: told.queries) }
        finishIfComplete(number)
        if container.groups.isEmpty { containers[container.key] = nil }
    }

    func container(of key: ContainerKey) -> LiveContainer {
        if let container = containers[key] { return container }
        let container = LiveContainer(key, seed: seed, mostSteps: settings.stepsPerChange)
        containers[key] = container
        return container
    }

    private func remove(_ id: String, of number: UInt64) {
        guard let client = clients[number],
            let declared = clients[number]?.queries.removeValue(forKey: id)
        else { return }
        clients[number]?.waiting.removeWithRoom(id)
        guard let group = containers[client.container]?.groups[declared.group] else { return }
        leave(group, LiveWaiter(client: number, query: id))
    }

    /// Removes a query from its group; the client stays if it has another query there.
    func leave(_ group: LiveGroup, _ waiter: LiveWaiter) {
        let isLast =
            !(clients[waiter.client]?.queries.values.contains { $0.group == group.number } ?? false)
        leave(group, waiter, isLast: isLast)
        if isLast { clients[waiter.client]?.hub.post([.leave(waiter.client, group.number)]) }
    }

    private func leave(_ group: LiveGroup, _ waiter: LiveWaiter, isLast: Bool) {
        group.once.remove(waiter)
        // A client that no longer comes back is not looked for with each change.
        if group.waiting.removeWithRoom(waiter)?.since != nil { forgetIfAllTold(group) }
        if isLast { group.clients.remove(waiter.client) }
    }

    /// Tells a client which groups show which queries, and how its new queries begin.
    private func tell(_ number: UInt64, _ set: LiveSet, undisturbed kept: Set<String>) {
        guard let client = clients[number] else { return }
        let details = Dictionary(set.queries.map { ($0.id, $0) }) { first, _ in first }
        var queries: [JSONValue] = []
        for (id, declared) in client.queries.sorted(by: { $0.key < $1.key })
        where !id.hasPrefix(LiveWaiter.getMark) {
            var object: JSONObject = ["id": .string(id)]
            if declared.group != LiveClient.Declared.ofInbox {
                object["group"] = .integer(Int64(declared.group))
            }
            object["fingerprint"] = .string(declared.fingerprint)
            if let new = details[id] {
                let stands = new.since != nil || new.after != nil
                if !kept.contains(id) {
                    object["isResumed"] = .bool(stands && new.reset == nil)
                }
                object.members += new.details.members
            }
            queries.append(.object(object))
        }
        client.hub.post([
            .send(number, [client.state(.bootstrapping, queries)])
        ])
    }

    /// Tells a client, once, that everything it asked for has been sent.
    func finishIfComplete(_ number: UInt64) {
        guard let client = clients[number], client.waiting.isEmpty, !client.isBehind else { return }
        clients[number]?.isCatchingUp = false
        defer { answerFences(of: number) }
        guard !client.isToldComplete else { return }
        clients[number]?.isToldComplete = true
        client.hub.post([
            .send(number, [client.state(.complete)]),
            .close(number, at, position),
        ])
    }

    /// The frame that closes everything sent so far, shared by all clients at this position.
    var at: LiveFrame {
        if let closing, closing.position == position { return closing.frame }
        let token = LiveToken(store: store, position: position, mark: marks[position])
        let frame = FrameWriter.at(token.text)
        closing = (position, frame)
        return frame
    }

    // MARK: Groups

    /// Finds or creates the group that shows a query.
    private func assign(
        _ declared: DeclaredQuery, to number: UInt64, in container: LiveContainer
    ) {
        guard let reader = clients[number]?.reader else { return }
        guard declared.query.kind != .notifications else {
            clients[number]?.queries[declared.id]?.group = LiveClient.Declared.ofInbox
            return
        }
        guard
            let group = group(for: declared.query, declared.grant, reader: reader, in: container)
        else { return }
        clients[number]?.queries[declared.id]?.group = group.number
        guard group.grant == declared.grant else { return }
        let shown = group.content.declared(as: declared.query)
        clients[number]?.queries[declared.id]?.shown = shown
    }

    func group(
        for query: LiveQuery, _ grant: ReadGrant, reader: LiveReader, in container: LiveContainer
    ) -> LiveGroup? {
        // If not everybody may read all records of the type, the reader decides what a limit cuts
        // off. Then shared groups are replaced by one for each reader, and these remain. This holds
        // in private databases too, where records may name readers as well.
        let mayBeOwn = query.isOrdered
        // The joint effect of several changes concerns several records, so it is for one reader
        // only.
        let isOwn = query.coalesces && query.kind == .result
        let own = mayBeOwn || isOwn ? reader : nil
        let shared = query.identity(of: nil)
        let identity =
            own != nil
                && (isOwn || container.byIdentity[query.identity(of: own)] != nil
                    || grant.isPersonal || container.namesReaders(query))
            ? query.identity(of: own) : shared
        if let group = container.byIdentity[identity] { return group }
        return newGroup(
            query, identity: identity, grant, reader: identity == shared ? nil : own,
            for: reader, in: container)
    }

    private func newGroup(
        _ query: LiveQuery, identity: String, _ grant: ReadGrant, reader: LiveReader?,
        for payer: LiveReader, in container: LiveContainer
    ) -> LiveGroup? {
        let group = LiveGroup(nextGroup, query, identity: identity, grant: grant, reader: reader)
        group.payer = payer
        do {
            try container.insert(group)
        } catch {
            logger.error(
                "could not index a live query", metadata: ["reason": "\(error)"])
            return nil
        }
        nextGroup &+= 1
        if nextGroup == LiveClient.Declared.ofInbox { nextGroup = 1 }
        meter.show(groups: containers.values.reduce(0) { $0 + $1.groups.count })
        return group
    }

    /// Adds a client's query to a group of its own reader; it is sent the result, or waits for it.
    func join(
        _ waiter: LiveWaiter, _ query: LiveQuery, _ grant: ReadGrant, reader: LiveReader,
        in container: LiveContainer
    ) {
        let identity = query.identity(of: reader)
        guard
            let group = container.byIdentity[identity]
                ?? newGroup(
                    query, identity: identity, grant, reader: reader, for: reader, in: container)
        else { return }
        clients[waiter.client]?.queries[waiter.query]?.group = group.number
        clients[waiter.client]?.waiting.insert(waiter.query)
        // A one-time get belongs to no set.
        if waiter.getID == nil, let client = clients[waiter.client] {
            clients[waiter.client]?.isToldComplete = false
            let place: JSONValue = [
                "id": .string(waiter.query), "group": .integer(Int64(group.number)),
            ]
            client.hub.post([
                .send(waiter.client, [client.state(.bootstrapping, [place])])
            ])
        }
        enter(waiter, group, in: container)
    }

    /// Begins a client's query, or continues it from its position.
    ///
    /// - Returns: Why it cannot go on from there, if it cannot.
    private func begin(
        _ declared: DeclaredQuery, for number: UInt64, in container: LiveContainer
    ) -> (reset: LiveReset, group: LiveGroup)? {
        guard let client = clients[number],
            let group = container.groups[client.queries[declared.id]?.group ?? 0]
        else {
            clients[number]?.waiting.removeWithRoom(declared.id)
            return nil
        }
        // A position that does not exist yet comes from another store, or from this one before it
        // was set back.
        let isAhead = declared.since.map { $0 > position } ?? false
        let reset = declared.reset ?? (isAhead ? .foreign : nil)
        if let reset {
            let isOfChanges = declared.query.kind == .changes
            client.hub.post([
                .send(
                    number,
                    [
                        FrameWriter.reset(
                            group.number, reset, from: isOfChanges ? declared.since : nil,
                            to: position)
                    ])
            ])
        }
        let since = reset == nil ? declared.since : nil
        let waiter = LiveWaiter(
            client: number, query: declared.id, since: since, isAnew: reset != nil)
        enter(waiter, group, in: container)
        guard let reset else { return nil }
        return (reset, group)
    }

    /// Sends a client what a group shows, now or once that is possible.
    func enter(_ waiter: LiveWaiter, _ group: LiveGroup, in container: LiveContainer) {
        guard let client = clients[waiter.client] else { return }
        container.readers[waiter.client] = client.reader
        group.idleLooks = 0
        let isUnread = group.query.kind == .result && group.members == nil
        if let since = waiter.since, since < position || isUnread {
            group.waiting.update(with: waiter)
            clients[waiter.client]?.waiting.insert(waiter.query)
            returning[container.key, default: []].insert(group.number)
            if isUnread { load(group, in: container) }
            beginResuming()
            return
        }
        switch group.query.kind {
        case .changes, .notifications: welcome(waiter, group)
        case .result where group.members == nil:
            group.waiting.update(with: waiter)
            clients[waiter.client]?.waiting.insert(waiter.query)
            load(group, in: container)
        case .result:
            welcome(
                waiter, group, [],
                waiter.since == nil ? beginning(of: group, for: waiter) : nil)
        }
    }

    /// Adds a client's query to those that are sent changes, after sending what there is.
    func welcome(
        _ waiter: LiveWaiter, _ group: LiveGroup, _ frames: [LiveFrame] = [],
        _ result: LiveResult? = nil
    ) {
        guard let client = clients[waiter.client] else { return }
        group.waiting.removeWithRoom(waiter)
        clients[waiter.client]?.waiting.removeWithRoom(waiter.query)
        clients[waiter.client]?.queries[waiter.query]?.begun = position
        var commands: [LiveCommand] = frames.isEmpty ? [] : [.send(waiter.client, frames)]
        if let progress = clients[waiter.client]?.progress() {
            let frame = client.state(.bootstrapping, progress: progress)
            commands.append(.send(waiter.client, [frame]))
        }
        if let result { commands.append(.show(waiter.client, result)) }
        let isOnce = client.queries[waiter.query]?.query.isOnce ?? false
        if waiter.getID != nil {
            clients[waiter.client]?.queries[waiter.query] = nil
        } else if isOnce, group.query.kind == .result {
            clients[waiter.client]?.queries[waiter.query]?.group = 0
            clients[waiter.client]?.queries[waiter.query]?.finished = position
        } else {
            if isOnce {
                group.once.insert(LiveWaiter(client: waiter.client, query: waiter.query))
            }
            group.clients.insert(waiter.client)
            commands.append(.join(waiter.client, group.number))
        }
        if !commands.isEmpty { client.hub.post(commands) }
    }
}
