import Logging
package import RelayModel
import Storage

extension LiveEngine {
    // MARK: Clients

    /// Lets a client in; `number` is its own among all hubs' clients.
    package func connect(
        _ number: UInt64, at hub: any LiveHub, of container: ContainerKey, as reader: LiveReader,
        on device: DeviceID? = nil
    ) {
        hubs[ObjectIdentifier(hub), default: (hub, 0)].clients += 1
        clients[number] = LiveClient(
            hub: hub, container: container, reader: reader, device: device)
        meter.show(clients: clients.count)
    }

    /// Forgets a client, and what only it wanted to see.
    package func disconnect(_ number: UInt64) {
        guard let client = clients.removeValue(forKey: number) else { return }
        let container = containers[client.container]
        for (id, declared) in client.queries {
            guard let group = container?.groups[declared.group] else { continue }
            leave(group, LiveWaiter(client: number, query: id), isLast: true)
        }
        let place = ObjectIdentifier(client.hub)
        hubs[place]?.clients -= 1
        if hubs[place]?.clients == 0 { hubs[place] = nil }
        meter.show(clients: clients.count)
    }

    /// How many clients there are, groups, and clients that lag, for whoever looks.
    package var counts: (clients: Int, groups: Int, lagging: Int) {
        (
            clients.count, containers.values.reduce(0) { $0 + $1.groups.count },
            clients.values.count { $0.isLagging }
        )
    }

    // MARK: Sets

    /// The version of the set that is in force.
    package func version(of number: UInt64) -> Int64? { clients[number]?.version }

    /// The names and queries that are in force.
    package func queries(of number: UInt64) -> [String: LiveQuery] {
        (clients[number]?.queries ?? [:]).filter { !$0.key.hasPrefix(LiveWaiter.getMark) }
            .mapValues(\.query)
    }

    /// The set that is in force, to be declared again as it was; `nil` where there is none.
    ///
    /// Queries that ended after `place`, or before all of a set of `version` was told that they are
    /// not in, are in it, because that was not heard.
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

    /// Takes an edit whole: queries that are not in it go on undisturbed.
    ///
    /// - Throws: ``RelayModel/APIError`` if it, or the set that is in force, was read under a
    ///   schema that is another now.
    package func declare(_ set: LiveSet, by number: UInt64) throws(APIError) {
        guard var client = clients[number] else { return }
        try check(set.schema, of: client.container)
        // What would go on is shown no more.
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
        // All before the first, so that what has been told is a part of them.
        clients[number]?.waiting.formUnion(new.map(\.id))
        // In one line for each reason: a set has a hundred queries, and may come at any time.
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

    /// Takes a query out of its group; the client stays if it has another one there.
    func leave(_ group: LiveGroup, _ waiter: LiveWaiter) {
        let isLast =
            !(clients[waiter.client]?.queries.values.contains { $0.group == group.number } ?? false)
        leave(group, waiter, isLast: isLast)
        if isLast { clients[waiter.client]?.hub.post([.leave(waiter.client, group.number)]) }
    }

    private func leave(_ group: LiveGroup, _ waiter: LiveWaiter, isLast: Bool) {
        group.once.remove(waiter)
        // Who comes back no more is not looked for with each change.
        if group.waiting.removeWithRoom(waiter)?.since != nil { forgetIfAllTold(group) }
        if isLast { group.clients.remove(waiter.client) }
    }

    /// Says which groups show which queries, and of those that begin how they do.
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

    /// Says that everything that was asked for has been told, once.
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

    /// What closes all that has been told until now: one frame for all who stand here.
    var at: LiveFrame {
        if let closing, closing.position == position { return closing.frame }
        let frame = FrameWriter.at(LiveToken(store: store, position: position).text)
        closing = (position, frame)
        return frame
    }

    // MARK: Groups

    /// Finds or makes the group that shows a query.
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
        // Where a record has shown that who looks decides, the group of all is gone, and its
        // members' own stay: in private databases too, where records may name readers as well.
        let mayBeOwn = query.isOrdered
        // What became of several changes is told of several records at once, to one reader.
        let isOwn = query.coalesces && query.kind == .result
        let own = mayBeOwn || isOwn ? reader : nil
        let shared = query.identity(of: nil)
        let identity =
            own != nil
                && (isOwn || container.byIdentity[query.identity(of: own)] != nil
                    || grant.isPersonal)
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
                "could not file a live query", metadata: ["reason": "\(error)"])
            return nil
        }
        nextGroup &+= 1
        if nextGroup == LiveClient.Declared.ofInbox { nextGroup = 1 }
        meter.show(groups: containers.values.reduce(0) { $0 + $1.groups.count })
        return group
    }

    /// Makes a client's query wait for, or be told, what there is, in the group of its own.
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
        // What is got once is of no set.
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

    /// Has a client's query begin, or go on from where it stood.
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
        // What has not been written yet was told by another store, or by this one before it was
        // set back.
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

    /// Tells a client what a group shows, now or once it can be told.
    func enter(_ waiter: LiveWaiter, _ group: LiveGroup, in container: LiveContainer) {
        guard clients[waiter.client] != nil else { return }
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

    /// Makes a client's query one that is told what comes, after it was told what there is.
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
