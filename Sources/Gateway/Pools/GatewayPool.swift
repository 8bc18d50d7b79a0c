import RelayModel

/// The connections of one credential in one gateway environment, and the requests that wait for
/// them.
///
/// APNs binds a connection to the first team that it sees, so credentials never share a connection.
/// The pool belongs to the gateway's thread. Its decisions are made by its parts, which are values.
final class GatewayPool {
    let name: GatewayPoolName
    let credential: GatewayCredential
    let context: GatewayContext
    let setup: TransferSetup
    var authority: PoolAuthority
    var queue = PushQueue()
    var streams: StreamShares
    var width: AdaptiveWidth
    var latency = AnswerLatency()
    var tolerance: SilenceTolerance
    private var growth = PoolGrowth()
    /// The number of requests that the gateway lets a connection serve, as learned.
    var endurance = ConnectionEndurance()
    /// The back-off before the next connection.
    var connecting = PoolBackOff()
    /// The containers whose requests wait a moment.
    var patience = ContainerPatience()
    var transfers: [CurlTransfer] = []
    var stock: [CurlTransfer] = []
    private var headers: [CurlHeaders.Key: CurlHeaders] = [:]
    private var lastHeaders: CurlHeaders?
    /// The connections that are not closed.
    var connections: [CurlConnection] = []
    /// Whether no request may be added any more.
    private(set) var isClosing = false

    /// Creates a pool.
    ///
    /// - Throws: An error that says what is wrong with the signing key.
    init(
        _ credential: GatewayCredential, environment: GatewayEnvironment, context: GatewayContext
    ) throws(ProviderTokenSigner.KeyError) {
        let endpoint = context.settings.endpoint(for: environment)
        let label =
            switch credential {
            case .signingKey(let key): "team \(key.teamID) key \(key.keyID)"
            case .certificate: "certificate"
            }
        self.credential = credential
        name = GatewayPoolName(environment: environment, endpoint: endpoint, credential: label)
        authority = try PoolAuthority(credential, environment: environment)
        var certificate: GatewayCredential.ClientCertificate?
        if case .certificate(let shown) = credential { certificate = shown }
        setup = TransferSetup(
            endpoint: endpoint, certificate: certificate, settings: context.settings,
            share: CurlSessionShare())
        self.context = context
        streams = StreamShares(most: context.settings.maximumWaiting)
        width = AdaptiveWidth(maximum: context.settings.streamsPerConnection)
        tolerance = SilenceTolerance(
            least: context.settings.watchdog,
            most: context.settings.requestTimeout + context.settings.watchdog)
    }

    /// The number of requests that wait.
    var waiting: Int { queue.count + patience.heldCount }
    /// The number of requests that are open.
    var open: Int { connections.reduce(0) { $0 + $1.life.openRequests } }
    /// Whether nothing is left that could end.
    var isSpent: Bool { isClosing && waiting == 0 && connections.isEmpty }

    /// Takes a request.
    ///
    /// If too many wait, completes it at once.
    func add(_ request: PushRequest) {
        guard !isClosing, waiting < context.settings.maximumWaiting else {
            let cause =
                isClosing
                ? RetirementCause.shuttingDown.cause
                : PushCause(
                    "too many requests already wait for this credential",
                    detail: "\(waiting)")
            context.complete(request, .notSent(cause: cause))
            return
        }
        enqueue(WaitingPush(request: request))
    }

    /// Makes a request wait for a place, or for the end of its container's pause.
    func enqueue(_ waiting: WaitingPush) {
        switch patience.verdict(on: waiting.request.container, at: context.now) {
        case .go: queue.append(waiting)
        case .hold: patience.hold(waiting)
        case .giveBack(let cause): context.complete(waiting.request, .notSent(cause: cause))
        }
    }

    /// Notes that an open request has ended, or that its connection gave it back.
    func noteEnd(of request: PushRequest, after latency: Duration = .zero) {
        streams.end(request.container, after: latency)
        queue.release(request.container)
    }

    /// Returns whether the container's next request waits until one of its open ones has ended.
    private func holds(_ container: ContainerKey) -> Bool {
        streams.holds(container)
            && context.contention.isContended(by: container, at: context.now.sinceBeginning)
    }

    /// Hands over the requests for which there is room.
    func dispatch() {
        for waiting in patience.release(at: context.now) { queue.append(waiting) }
        guard queue.isReady else {
            growth.relax()
            return
        }
        let usable = connections.count { $0.life.takesRequests }
        let pause = connecting.remaining(at: context.now)
        if mustWait(usable: usable, pause: pause) { return }
        if pause == .zero, wantsSuccessor(usable: usable) { connect() }
        fill()
        if !queue.isReady {
            growth.relax()
        } else if pause == .zero,
            connections.count(where: \.life.isDoubtful)
                <= context.settings.connectionsPerCredential,
            growth.opens(
                usable: usable, ramping: connections.count { $0.life.isRamping },
                maximum: context.settings.connectionsPerCredential, at: context.now)
        {
            connect()
            fill()
        }
    }

    /// Returns whether the connections that take requests have almost used up their allowance.
    private func wantsSuccessor(usable: Int) -> Bool {
        guard let allowance = endurance.allowance(at: context.now),
            usable < 2 * context.settings.connectionsPerCredential
        else { return false }
        let remaining = connections.filter(\.life.takesRequests).map(\.life.remaining)
        return ConnectionEndurance.wantsSuccessor(remaining: remaining, allowance: allowance)
    }

    /// Returns whether no request can be handed over now.
    ///
    /// Completes the requests that would wait too long.
    private func mustWait(usable: Int, pause: Duration) -> Bool {
        guard usable == 0, pause > .zero else { return false }
        if pause > ContainerPatience.longestHold { failWaiting(connecting.cause(pausing: pause)) }
        return true
    }

    /// Handles the passing of time: detects dead connections, closes finished ones, replaces old
    /// ones.
    func tick() {
        let silence = tolerance.current
        for connection in connections {
            connection.runTimer(at: context.now)
            switch connection.life.tick(at: context.now, tolerating: silence) {
            case .none: break
            case .close: close(connection)
            case .drop(let cause):
                if cause == .silent, !connection.life.isEnding {
                    tolerance.giveUp(after: silence)
                }
                drop(connection, cause)
            }
        }
        retireIdle()
    }

    /// The time at which something happens without an event: libcurl's timers, and requests that
    /// can be handed over.
    var wakesAt: MonotonicInstant? {
        if queue.isReady, vacant() != nil { return context.now }
        return (connections.map(\.wakesAt) + [patience.wakesAt]).compactMap(\.self).min()
    }

    /// Ends the turn: sends the data that was held back, and tells the poll what to watch.
    func settleSockets() {
        for connection in connections {
            connection.uncork()
            connection.applyWatches()
        }
    }

    /// Tries again at once what failed, because the settings of `container` were looked at.
    func tryAnew(_ container: ContainerKey) {
        connecting = PoolBackOff()
        authority.acquit()
        for waiting in patience.forget(container) { queue.append(waiting) }
    }

    /// Takes out the requests of `container` that wait.
    func withdraw(_ container: ContainerKey) -> [PushRequest] {
        (queue.remove(container) + patience.forget(container)).map(\.request)
    }

    /// Takes no more requests, completes those that wait, and lets the open ones finish.
    func close(_ cause: RetirementCause) {
        isClosing = true
        failWaiting(cause.cause)
        for connection in connections { connection.life.retire(cause) }
    }

    /// Ends everything now.
    func abort(_ cause: RetirementCause) {
        close(cause)
        for connection in connections { drop(connection, cause) }
        failWaiting(cause.cause)
    }
}

// MARK: - Handing over

extension GatewayPool {
    /// Hands over requests as long as there is room.
    private func fill() {
        let proof: PoolAuthority.Proof
        let wall = context.wallClock()
        do {
            proof = try authority.proof(at: wall, context)
        } catch {
            switch error {
            case .minting: failWaiting(error.cause)
            case .key:
                for waiting in queue.removeAll() {
                    context.complete(
                        waiting.request, .refused(.withoutCredential(error.cause.description)))
                }
            }
            return
        }
        while let connection = vacant(),
            let next = queue.popFirst(unless: holds)
        {
            start(next, over: connection, proof, at: wall)
        }
    }

    /// Returns the oldest connection with a free place, or one that needs a request in order to
    /// open.
    ///
    /// One connection after the other is filled, and not all alike, because requests that travel
    /// together cost less, and connections that are no longer needed can be closed.
    func vacant() -> CurlConnection? {
        var oldest: CurlConnection?
        for connection in connections where connection.life.vacancies(width: width.current) > 0 {
            if connection.life.isRamping { return connection }
            if oldest == nil { oldest = connection }
        }
        return oldest
    }

    private func start(
        _ waiting: WaitingPush, over connection: CurlConnection, _ proof: PoolAuthority.Proof,
        at wall: Timestamp
    ) {
        if let fault = waiting.request.notification.faultForAPNs() {
            let row = ReasonTable.apns.row(status: fault.status, reason: fault.reason)
            // No gateway answered, so there is no status.
            let refusal = GatewayRefusal(
                status: 0, reason: fault.reason, reaction: row.reaction,
                urgency: row.urgency, explanation: "not sent: \(row.meaning)")
            context.complete(waiting.request, .refused(refusal))
            return
        }
        guard wants(waiting.request) else {
            context.complete(waiting.request, .notSent(cause: .registrationEnded))
            return
        }
        guard let transfer = connection.free.popLast() ?? stock.popLast() ?? newTransfer() else {
            context.complete(waiting.request, .notSent(cause: "memory is short"))
            return
        }
        let shared = headers(for: waiting.request.notification, proof)
        transfer.load(waiting, headers: shared, over: connection, at: context.now, wall: wall)
        context.contention.note(waiting.request.container, at: context.now.sinceBeginning)
        streams.begin(waiting.request.container, at: context.now)
        connection.start(transfer, at: context.now)
        context.countMove()
    }

    private func newTransfer() -> CurlTransfer? {
        guard let transfer = CurlTransfer(setup) else { return nil }
        transfers.append(transfer)
        return transfer
    }

    private func headers(
        for notification: PushNotification, _ proof: PoolAuthority.Proof
    ) -> CurlHeaders {
        let key = CurlHeaders.Key(
            topic: notification.topic, pushType: notification.pushType.rawValue,
            priority: notification.priority, tokenGeneration: proof.generation)
        if let lastHeaders, lastHeaders.key == key { return lastHeaders }
        let found = headers[key] ?? CurlHeaders(key, bearer: proof.token)
        if headers.count > 256 || lastHeaders?.key.tokenGeneration != proof.generation {
            headers.removeAll()
        }
        headers[key] = found
        lastHeaders = found
        return found
    }

    private func connect() {
        guard
            let connection = CurlConnection(
                number: context.nextConnectionNumber(), width: width.maximum,
                poll: context.poll.descriptor, owner: self, bounds: bounds,
                allowance: endurance.allowance(at: context.now), now: context.now)
        else { return }
        connections.append(connection)
    }

    private var bounds: ConnectionBounds {
        var bounds = ConnectionBounds()
        bounds.connecting = setup.settings.connectTimeout
        bounds.watchdog = setup.settings.watchdog
        bounds.answer = setup.settings.requestTimeout
        let spread = Double.random(in: 0.9...1.1, using: &context.generator)
        bounds.maximumAge = setup.settings.maximumConnectionAge * spread
        return bounds
    }
}
