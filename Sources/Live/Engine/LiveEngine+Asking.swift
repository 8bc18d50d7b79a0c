package import RelayModel
import Storage

extension LiveEngine {
    /// Sends a client the answer to a fence once it has been sent everything that was durable when
    /// it asked, including results that are still being read for it.
    ///
    /// - Throws: 429 if too many fences of the client wait.
    package func fence(_ id: String, of number: UInt64) async throws {
        try await reachHead()
        guard let client = clients[number] else { return }
        let frame = LiveFrame(["type": "fenced", "id": .string(id)])
        let bytes = client.fences.reduce(frame.count) { $0 + $1.count }
        guard client.fences.isEmpty || bytes <= LiveSettings.fenceBytes else {
            throw APIError(
                .throttled,
                "too many fences wait for results that are still being read for the client",
                retryAfter: 1)
        }
        clients[number]?.fences.append(frame)
        answerFences(of: number)
    }

    /// Sends a client the answers to its fences, unless queries wait, or the client fell behind and
    /// was not sent everything.
    func answerFences(of number: UInt64) {
        guard let client = clients[number], !client.fences.isEmpty, client.waiting.isEmpty,
            !client.isBehind
        else { return }
        clients[number]?.fences = []
        client.hub.post([
            .send(number, client.fences), .close(number, at, position),
        ])
    }

    /// Returns once the engine has worked everything that is durable now.
    package func reachHead() async throws {
        try await reach(try await log.head())
    }

    /// Returns once the engine has worked all entries up to `target`.
    ///
    /// - Throws: 503 once waiting has ended; `CancellationError`.
    package func reach(_ target: LogPosition) async throws {
        // Before the engine follows the log, its position means nothing.
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

    /// Ends all waiting, because the relay shuts down.
    ///
    /// The log may never be followed so far, if the database is away or following has failed.
    package func endWaiting() { waiters.end() }

    /// Sends clients the position up to which everything has been sent.
    ///
    /// Thousands of clients are served in several posts, between which a loop can do other work.
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

    /// Notes that a query of notifications has ended; declared again, it counts as a new query.
    package func end(inbox id: String, of number: UInt64) {
        guard clients[number]?.queries[id]?.group == LiveClient.Declared.ofInbox else { return }
        clients[number]?.queries[id]?.group = 0
    }

    /// Looks after the groups and updates the metrics, every ``LiveSettings/afterlife``.
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

    /// Forgets groups that have been unused for a while, and makes a current reader pay for each of
    /// the others.
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
    /// Sends a client a result once; the query does not remain afterwards.
    ///
    /// The result contains everything that was durable when the client asked.
    ///
    /// - Throws: ``RelayModel/APIError`` if the query was read under a schema that has changed
    ///   since, or if a get of this name has not been answered yet.
    package func get(
        _ id: String, _ declared: DeclaredQuery, under schema: LiveSchema, for number: UInt64
    ) async throws {
        // Results that other clients are shown already are as of the position followed to.
        try await reachHead()
        guard let client = clients[number] else { return }
        try check(schema, of: client.container)
        try checkRoom(for: [declared], of: client)
        guard client.queries[LiveWaiter.getMark + id] == nil else {
            throw APIError(
                .exists, "id: an earlier get with this id has not been answered yet",
                details: ["liveError": "duplicateQuery"])
        }
        let container = container(of: client.container)
        guard
            let group = group(
                for: declared.query, declared.grant, reader: client.reader, in: container)
        else { return }
        // The query belongs to no set, so it gets a name that no client can give.
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
