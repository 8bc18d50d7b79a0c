import Live
import RelayModel
import Storage
import Synchronization

/// The session of one `EventSource` client, which can send neither headers nor a body.
///
/// The client has said in a request before who it is and what it wants to see, and names the
/// session by a secret. Its frames go to its stream. A stream that is opened again continues where
/// the last one was read to: the set is declared again, from the token that browsers send back.
final class HeldSession: Sendable {
    private struct State {
        var session: LiveSession
        var hub: StreamHub
        /// The number of times that a stream was opened or closed.
        var turns = 0
        /// Whether any stream was opened.
        var isStreamed = false
        /// Whether a stream is open.
        var isOpen = false
        /// Whether a stream is replacing another one, which is ended before the new one is noted.
        var isReopening = false
        /// Whether a frame of the client is being worked, or waits for its turn.
        var isWorking = false
        /// Whether a frame is being worked or a stream being opened; these exclude each other.
        var isBusy = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    let identity: LiveIdentity
    private let access: LiveAccess
    private let head: RelayRequest
    private let state: Mutex<State>

    init(
        _ session: LiveSession, at hub: StreamHub, _ identity: LiveIdentity, _ access: LiveAccess,
        head: RelayRequest
    ) {
        self.identity = identity
        self.access = access
        self.head = head
        state = Mutex(State(session: session, hub: hub))
    }

    /// Whether the session has not been ended.
    var isAlive: Bool {
        let (isReopening, number) = state.withLock { ($0.isReopening, $0.session.number) }
        return isReopening || access.knows(stream: number)
    }

    // MARK: Streams

    /// Opens a stream, which replaces one that is open.
    ///
    /// - Parameters:
    ///   - place: The place up to which the last stream was read, as the browser reports it.
    ///   - mark: The number of revocations when it was established who opens the stream.
    /// - Returns: The hub of the stream, and the number by which to close it.
    /// - Throws: ``LiveEnd`` if there is no room, or if another stream was opened meanwhile.
    func open(
        from place: LiveEventID?, since mark: UInt64
    ) async throws -> (hub: StreamHub, turn: Int) {
        let (first, turn) = state.withLock { state -> (StreamHub?, Int) in
            state.turns += 1
            let isFirst = !state.isStreamed && place == nil
            state.isStreamed = true
            state.isOpen = true
            return (isFirst ? state.hub : nil, state.turns)
        }
        if let first { return (first, turn) }
        // An edit belongs either to the previous stream, and is declared again here, or to this
        // one.
        await beginTurn()
        defer { endTurn() }
        return (try await reopen(from: place, turn, since: mark), turn)
    }

    /// Waits until no frame is being worked and no stream is being opened.
    private func beginTurn() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isBusy { state.waiting.append(continuation) }
                defer { state.isBusy = true }
                return !state.isBusy
            }
            if isFree { continuation.resume() }
        }
    }

    /// Hands the turn to the next waiter.
    private func endTurn() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isBusy = !state.waiting.isEmpty
            return state.isBusy ? state.waiting.removeFirst() : nil
        }
        next?.resume()
    }

    /// Replaces the previous stream.
    private func reopen(
        from place: LiveEventID?, _ turn: Int, since mark: UInt64
    ) async throws -> StreamHub {
        // A newer stream was opened while this one waited, and has taken its place.
        guard state.withLock({ $0.turns == turn }) else { throw Self.taken }
        // The session may have ended; an ended session is not continued.
        guard isAlive else { throw HeldSessions.unknown }
        let hub = StreamHub(identity, access.backlog)
        let session = LiveSession(access, at: access.streams, head: head)
        access.streams.add(hub, of: session.number)
        session.lag(at: hub)
        let (former, past) = state.withLock { ($0.session, $0.hub) }
        let who = former.identity ?? identity
        let heard = place?.token.position
        let set = await access.engine.declared(
            by: former.number, after: heard, told: place?.version ?? 0)
        let (notified, charges) = (former.feed?.start, former.charges)
        state.withLock { $0.isReopening = true }
        defer { state.withLock { $0.isReopening = false } }
        end(former, past, saying: Self.taken)
        do {
            try access.arrive(of: who.settings.key)
            try await session.begin(as: who, nil)
        } catch {
            session.end()
            throw error
        }
        access.note(hub, of: who, session.number)
        // Even if a newer stream waits by now: it continues from this one.
        state.withLock { state in (state.session, state.hub) = (session, hub) }
        if let fault = access.end(of: who, since: mark) {
            end(session, hub, saying: fault)
            throw fault
        }
        session.take(charges)
        try await declare(set, by: session, who, from: place, notified: notified)
        return hub
    }

    private func declare(
        _ set: LiveSet?, by session: LiveSession, _ identity: LiveIdentity,
        from place: LiveEventID?, notified: UInt64?
    ) async throws {
        guard var set else { return }
        for index in set.queries.indices {
            guard set.queries[index].query.kind != .notifications else {
                // It is unknown which notifications arrived, so they are sent again with their
                // tokens.
                set.queries[index].after = notified
                continue
            }
            // A later query had not been sent completely, so it begins as it was declared.
            guard let place, place.covers(set.queries[index]) else { continue }
            set.queries[index].since = place.token.position
            set.queries[index].entryMark = place.token.mark
            set.queries[index].reset = place.token.store == access.store ? nil : .foreign
        }
        try await access.engine.reachHead()
        try await session.declare(set, identity)
    }

    private func end(_ session: LiveSession, _ hub: StreamHub, saying end: LiveEnd) {
        hub.post([.send(session.number, [end.bye(uuid: access.identifiers.uuid())])])
        hub.end(saying: end)
        access.forget(stream: session.number)
        session.end()
    }

    private static let taken = LiveEnd(
        .taken, APIError(.conflict, "another stream has taken over the session"))

    /// Notes that a stream is no longer read.
    ///
    /// - Returns: The number to pass to ``isIdle(since:)``; `nil` if a stream has been opened
    ///   since.
    func close(_ turn: Int) -> Int? {
        state.withLock { state in
            guard state.turns == turn else { return nil }
            state.isOpen = false
            state.turns += 1
            return state.turns
        }
    }

    /// Returns whether no stream has been opened since.
    func isIdle(since turn: Int) -> Bool {
        state.withLock { $0.turns == turn && !$0.isOpen }
    }

    /// Ends the session; `reason` is given if it is the relay that ends it.
    func end(saying reason: LiveEnd? = nil) {
        let (session, hub) = state.withLock { ($0.session, $0.hub) }
        if let reason { hub.end(saying: reason) } else { hub.end() }
        access.forget(stream: session.number)
        session.end()
    }

    // MARK: Frames

    /// Works one frame of the client; its results go to the stream.
    ///
    /// - Throws: ``LiveEnd`` if the frame cannot be read, or says goodbye; 429 while another one is
    ///   worked.
    func take(_ frame: [UInt8]) async throws {
        let isNext = state.withLock { state in
            defer { state.isWorking = true }
            return !state.isWorking
        }
        guard isNext else {
            throw APIError(
                .throttled, "a frame is still being processed; send frames one after the other",
                retryAfter: 1)
        }
        defer { state.withLock { $0.isWorking = false } }
        await beginTurn()
        defer { endTurn() }
        // A stream that was opened meanwhile may have been refused, which ended the session.
        guard isAlive else { throw HeldSessions.unknown }
        let session = state.withLock { $0.session }
        try await session.take(frame, isCounted: true)
        guard let identity = session.identity else { return }
        // The frame may have renewed the user token.
        access.renew(stream: session.number, of: identity)
    }
}

/// The sessions of `EventSource` clients.
final class HeldSessions: Sendable {
    /// How long a session without a stream is kept.
    static let patience = Duration.seconds(60)

    private let clock: any Clock<Duration>
    private let sessions = Mutex<[String: HeldSession]>([:])

    init(clock: any Clock<Duration>) {
        self.clock = clock
    }

    /// Adds a session, and keeps it for a while until a stream is opened.
    func hold(_ session: HeldSession, as secret: String) {
        let turn = sessions.withLock { sessions in
            sessions[secret] = session
            return 0
        }
        expire(secret, unlessOpenedAfter: turn)
    }

    /// Returns the session with this secret.
    ///
    /// - Throws: 404 if there is none, or if it belongs to another container.
    func session(
        _ secret: String, of container: String?, _ environment: String?
    ) throws(APIError) -> HeldSession {
        let session = sessions.withLock { $0[secret] }
        let key = session?.identity.settings.key
        // The environment may be in capitals, as in every path.
        guard let session, key?.container.rawValue == container,
            key?.environment.rawValue == environment?.lowercased()
        else { throw Self.unknown }
        guard session.isAlive else {
            end(secret)
            throw Self.unknown
        }
        return session
    }

    static let unknown = APIError(
        .notFound,
        "there is no such session; a session without a stream ends after "
            + "\(patience.components.seconds) seconds")

    /// Closes a stream; its session is kept for a while.
    func close(_ turn: Int, of secret: String) {
        guard let idle = sessions.withLock({ $0[secret] })?.close(turn) else { return }
        expire(secret, unlessOpenedAfter: idle)
    }

    private func expire(_ secret: String, unlessOpenedAfter turn: Int) {
        Task { [clock, weak self] in
            try? await clock.sleep(for: Self.patience)
            guard let self, let session = sessions.withLock({ $0[secret] }),
                session.isIdle(since: turn)
            else { return }
            end(secret)
        }
    }

    /// Ends and removes a session.
    func end(_ secret: String, saying reason: LiveEnd? = nil) {
        sessions.withLock { $0.removeValue(forKey: secret) }?.end(saying: reason)
    }
}
