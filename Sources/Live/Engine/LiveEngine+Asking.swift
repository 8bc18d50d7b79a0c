package import RelayModel
import Storage

extension LiveEngine {
    /// Tells a client once everything has been sent that was durable when it asked, the results
    /// that are still read for it among that.
    ///
    /// - Throws: 429 if too many such questions of the client's wait.
    package func fence(_ id: String, of number: UInt64) async throws {
        try await reachHead()
        guard let client = clients[number] else { return }
        let frame = LiveFrame(["type": "fenced", "id": .string(id)])
        let bytes = client.fences.reduce(frame.count) { $0 + $1.count }
        guard client.fences.isEmpty || bytes <= LiveSettings.fenceBytes else {
            throw APIError(
                .throttled, "too many fences wait for what is read for the client", retryAfter: 1)
        }
        clients[number]?.fences.append(frame)
        answerFences(of: number)
    }

    /// Tells a client that everything has been sent that was durable when it asked for that, unless
    /// something waits, or was not sent because it fell behind.
    func answerFences(of number: UInt64) {
        guard let client = clients[number], !client.fences.isEmpty, client.waiting.isEmpty,
            !client.isBehind
        else { return }
        clients[number]?.fences = []
        client.hub.post([
            .send(number, client.fences), .close(number, at, position),
        ])
    }

    /// Returns once everything has been worked that is durable now.
    package func reachHead() async throws {
        try await reach(try await log.head())
    }

    /// Returns once all entries up to `target` have been worked.
    ///
    /// - Throws: 503 once nobody is to wait any more; `CancellationError`.
    package func reach(_ target: LogPosition) async throws {
        // Before it follows, no position is one.
        guard !isFollowing || position < target else { return }
        guard !waiters.isOver else { throw APIError.nobodyWaits }
        let number = waiters.number()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiters.add($0, number, until: target) }
        } onCancel: {
            Task { await self.forget(waiter: number) }
        }
    }

    private func forget(waiter number: UInt64) { waiters.cancel(number) }

    /// Lets nobody wait any more: the relay ends, and the log may never be followed so far, where
    /// the database is away or following has failed.
    package func endWaiting() { waiters.end() }

    /// Sends a client how far everything has been told.
    ///
    /// Of thousands it is told in a few posts, between which others of a loop have their turns.
    package func beat(_ numbers: [UInt64]) {
        let at = at
        var posts: [ObjectIdentifier: (hub: any LiveHub, commands: [LiveCommand])] = [:]
        for number in numbers {
            guard let hub = clients[number]?.hub else { continue }
            posts[ObjectIdentifier(hub), default: (hub, [])].commands
                .append(.close(number, at, position))
        }
        let most = LiveSettings.beatsPerPost
        for (hub, commands) in posts.values {
            for start in stride(from: 0, to: commands.count, by: most) {
                hub.post(Array(commands[start..<min(start + most, commands.count)]))
            }
        }
    }

    /// Notes that a query of notifications has ended: declared again it is another one.
    package func end(inbox id: String, of number: UInt64) {
        guard clients[number]?.queries[id]?.group == LiveClient.Declared.ofInbox else { return }
        clients[number]?.queries[id]?.group = 0
    }

    /// Looks after the groups from time to time.
    package func sweep() async throws {
        while true {
            try await clock.sleep(for: LiveSettings.afterlife)
            lookAfterGroups()
            let groups = containers.values.flatMap(\.groups.values)
            meter.show(
                members: groups.reduce(0) { $0 + ($1.members?.all.count ?? 0) }, bytes: memory,
                lagging: counts.lagging)
        }
    }

    /// Forgets the groups that nobody has needed for a while; each of the others is paid for by
    /// somebody who asks for it still.
    func lookAfterGroups() {
        for container in containers.values {
            for group in container.groups.values {
                guard group.isIdle else {
                    let number = group.clients.first ?? group.waiting.first?.client
                    let reader = number.flatMap { clients[$0]?.reader }
                    if let reader { container.charge(group, to: reader) }
                    continue
                }
                group.idleLooks += 1
                if group.idleLooks > 1 { discard(group, in: container) }
            }
        }
    }
}

extension LiveEngine {
    /// Sends a client a result once, in which all is that was durable when it was asked for;
    /// nothing of it remains.
    ///
    /// - Throws: ``RelayModel/APIError`` if the query was read under a schema that is another now,
    ///   or one of this name has not been answered.
    package func get(
        _ id: String, _ declared: DeclaredQuery, under schema: LiveSchema, for number: UInt64
    ) async throws {
        // What others are shown already is as of where the log has been followed to.
        try await reachHead()
        guard let client = clients[number] else { return }
        try check(schema, of: client.container)
        try checkRoom(for: [declared], of: client)
        guard client.queries[LiveWaiter.getMark + id] == nil else {
            throw APIError(
                .exists, "id: a get of this name has not been answered yet",
                details: ["liveError": "duplicateQuery"])
        }
        let container = container(of: client.container)
        guard
            let group = group(
                for: declared.query, declared.grant, reader: client.reader, in: container)
        else { return }
        // A query of no set, under a name that no client can give.
        let name = LiveWaiter.getMark + id
        var query = declared.query
        query.isOnce = true
        clients[number]?.queries[name] = LiveClient.Declared(
            shown: group.grant == declared.grant
                ? group.content.declared(as: query) : LiveShown(query, grant: declared.grant),
            group: group.number, fingerprint: "",
            declaration: DeclaredQuery.Declaration(version: 0, since: nil, reset: nil))
        enter(LiveWaiter(client: number, query: name), group, in: container)
    }
}
