import RelayModel

/// The gateway's thread.
///
/// It takes requests, moves bytes through sockets, and reports ends of attempts, until it is told
/// to stop.
///
/// Everything that it owns is used on this thread alone.
final class GatewayLoop {
    private let mailbox: GatewayMailbox
    private let context: GatewayContext
    private let credentials: CredentialSource
    private let sink: PushCompletionSink
    private var pools: [PoolKey: GatewayPool] = [:]
    /// The pools whose credential no container uses any more, while they finish their open
    /// requests.
    private var leaving: [GatewayPool] = []
    private var routes: [Route: GatewayPool] = [:]
    private var lastRoute: (route: Route, pool: GatewayPool)?
    private var busy: [GatewayPool] = []
    private var closing: ClosingBound?
    private var sweptAt: MonotonicInstant
    private var restedAt: MonotonicInstant

    /// The time of the end, whatever is open then.
    private struct ClosingBound {
        let last: MonotonicInstant
        let silence: Duration
        /// The time of the last answer.
        var answeredAt: MonotonicInstant

        var comesAt: MonotonicInstant { min(last, answeredAt.advanced(by: silence)) }
    }

    private struct Route: Hashable {
        var container: ContainerKey
        var environment: GatewayEnvironment
    }

    private struct PoolKey: Hashable {
        var credential: GatewayCredential
        var environment: GatewayEnvironment
    }

    /// The time between two checks of pools without work.
    private static let sweep = Duration.seconds(1)
    /// The time between two checks of pools with work when nothing happens.
    private static let patrol = Duration.milliseconds(100)

    init(
        mailbox: GatewayMailbox, context: GatewayContext, credentials: @escaping CredentialSource,
        sink: @escaping PushCompletionSink
    ) {
        self.mailbox = mailbox
        self.context = context
        self.credentials = credentials
        self.sink = sink
        sweptAt = context.now
        restedAt = context.now
    }

    /// Runs until the mailbox says that the gateway must end, and everything has ended.
    func run() {
        while !hasEnded {
            turn()
        }
        for pool in everyPool { pool.abort(.shuttingDown) }
        report()
        mailbox.end()
    }

    private var hasEnded: Bool {
        guard let closing else { return false }
        return context.now >= closing.comesAt || everyPool.allSatisfy(\.isSpent)
    }

    private func turn() {
        context.now = EventPoll.now
        takeMail()
        for pool in busy {
            pool.dispatch()
            pool.tick()
        }
        report()
        sweepIfDue()
        for pool in busy { pool.settleSockets() }
        // If nothing is open any more, no event would wake the thread before the next patrol.
        guard !hasEnded else { return }
        pause()
        wait()
        // Reported before the next turn sends, because callers wait for these ends.
        report()
    }

    /// Rests if that lets more requests travel together.
    private func pause() {
        let now = EventPoll.now
        let rest = LoopPacing.rest(
            open: busy.reduce(0) { $0 + $1.open }, moved: context.takeMoved(),
            elapsed: now.duration(since: restedAt),
            latency: busy.lazy.map(\.latency.average).min() ?? .zero)
        if rest > .zero { EventPoll.rest(rest) }
        restedAt = now.advanced(by: rest)
    }

    private func takeMail() {
        let mail = mailbox.take()
        guard !mail.isEmpty else { return }
        for container in Set(mail.changedContainers) { lead(container) }
        if !mail.changedContainers.isEmpty { closeForsakenPools() }
        for batch in mail.batches {
            for request in batch { route(request) }
        }
        switch mail.closing {
        case nil: return
        case .within(let bound, let silence)?: beginEnd(within: bound, silence: silence)
        case .atOnce?: beginEnd(within: .zero, silence: .zero)
        }
    }

    private func beginEnd(within bound: Duration, silence: Duration) {
        closing = ClosingBound(
            last: context.now.advanced(by: bound), silence: silence, answeredAt: context.now)
        for pool in everyPool { pool.close(.shuttingDown) }
        busy = everyPool
    }

    private func wait() {
        var wakesAt = context.now.advanced(by: busy.isEmpty ? Self.sweep : Self.patrol)
        for pool in busy {
            if let due = pool.wakesAt, due < wakesAt { wakesAt = due }
        }
        if let closing { wakesAt = min(wakesAt, closing.comesAt) }
        let milliseconds = wakesAt.duration(since: EventPoll.now).wholeMilliseconds
        context.poll.wait(milliseconds: milliseconds) { event in
            context.now = EventPoll.now
            act(event)
        }
    }

    private func act(_ event: EventPoll.Event) {
        for pool in busy {
            for connection in pool.connections where connection.number == event.connection {
                connection.act(on: event.socket, flags: event.flags, at: context.now)
                return
            }
        }
        // No request is open on the connection. Its peer has gone away, or announces it.
        for pool in everyPool {
            for connection in pool.connections where connection.number == event.connection {
                connection.act(on: event.socket, flags: event.flags, at: context.now)
                busy.append(pool)
                return
            }
        }
    }

    private func report() {
        let completions = context.takeCompletions()
        guard !completions.isEmpty else { return }
        closing?.answeredAt = context.now
        sink(completions)
    }
}

// MARK: - Pools

extension GatewayLoop {
    private var everyPool: [GatewayPool] { pools.values + leaving }

    private func route(_ request: PushRequest) {
        let route = Route(container: request.container, environment: request.environment)
        if let lastRoute, lastRoute.route == route {
            lastRoute.pool.add(request)
            return
        }
        switch pool(for: route) {
        case .success(let pool):
            lastRoute = (route, pool)
            if !busy.contains(where: { $0 === pool }) { busy.append(pool) }
            pool.add(request)
        case .failure(let failure):
            context.complete(request, .refused(.withoutCredential(failure.cause)))
        }
    }

    private struct RouteFailure: Error {
        var cause: String
    }

    private func pool(for route: Route) -> Result<GatewayPool, RouteFailure> {
        if let pool = routes[route] { return .success(pool) }
        guard let credential = credentials(route.container, route.environment) else {
            return .failure(
                RouteFailure(
                    cause: "\(route.container) has no credential for the gateway's "
                        + "\(route.environment.rawValue) environment"))
        }
        let key = PoolKey(credential: credential, environment: route.environment)
        do {
            let pool =
                try pools[key]
                ?? GatewayPool(credential, environment: route.environment, context: context)
            pools[key] = pool
            routes[route] = pool
            return .success(pool)
        } catch {
            return .failure(RouteFailure(cause: "\(error)"))
        }
    }

    /// Routes `container` to its current credential.
    ///
    /// The requests that wait for the former one move with it.
    private func lead(_ container: ContainerKey) {
        lastRoute = nil
        for (route, pool) in routes where route.container == container {
            guard credentials(container, route.environment) != pool.credential else {
                pool.tryAnew(container)
                continue
            }
            routes[route] = nil
            for request in pool.withdraw(container) { self.route(request) }
        }
    }

    /// Closes pools that no route leads to.
    ///
    /// They take no more requests, finish the open ones, and are then released with their keys.
    private func closeForsakenPools() {
        let used = Set(routes.values.map(ObjectIdentifier.init))
        for (key, pool) in pools where !used.contains(ObjectIdentifier(pool)) {
            pool.close(.credentialReplaced)
            pool.tick()
            pools[key] = nil
            leaving.append(pool)
        }
        leaving.removeAll(where: \.isSpent)
    }

    private func sweepIfDue() {
        guard context.now.duration(since: sweptAt) >= Self.sweep else { return }
        sweptAt = context.now
        for pool in everyPool {
            pool.tick()
            pool.streams.sweep(at: context.now)
        }
        leaving.removeAll(where: \.isSpent)
        busy = everyPool.filter { $0.waiting > 0 || $0.open > 0 }
        lastRoute = nil
        var gauge = GatewayGauge()
        for pool in everyPool {
            gauge.waiting += pool.waiting
            gauge.open += pool.open
            gauge.connections += pool.connections.count
        }
        mailbox.gauge = gauge
    }
}
