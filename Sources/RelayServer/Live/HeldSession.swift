import Live
import RelayModel
import Storage
import Synchronization

/// One client of `EventSource`, which sends neither headers nor a body: it has said before who it
/// is and what it wants to see, and is known by a secret.
///
/// What it is told goes to its stream. A stream that is opened again begins where the last one was
/// read to: what it wants to see is declared anew, from the token that browsers send back.
final class HeldSession: Sendable {
    private struct State {
        var session: LiveSession
        var hub: StreamHub
        /// How often a stream was opened, or given up.
        var turns = 0
        /// Whether one was opened yet.
        var isStreamed = false
        /// Whether one is open.
        var isOpen = false
        /// Whether one takes the place of another, which is ended before the new one is noted.
        var isReopening = false
        /// Whether a frame of the client's is being worked, or waits for that.
        var isWorking = false
        /// Whether a frame is worked or a stream opened, of which one waits for the other.
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

    /// Whether nobody has ended it.
    var isAlive: Bool {
        let (isReopening, number) = state.withLock { ($0.isReopening, $0.session.number) }
        return isReopening || access.knows(stream: number)
    }

    // MARK: Streams

    /// Opens the stream, which takes the place of one that is open.
    ///
    /// - Parameters:
    ///   - place: where the last one was read to, as the browser says.
    ///   - mark: how much had been revoked when it was known who opens it.
    /// - Returns: What comes, and the number by which it is given up.
    /// - Throws: ``LiveEnd`` if there is no room, or another one was opened meanwhile.
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
        // An edit is of the stream before, and declared anew on this one, or it is of this one.
        await beginTurn()
        defer { endTurn() }
        return (try await reopen(from: place, turn, since: mark), turn)
    }

    /// Waits until no frame is worked and no stream opened.
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

    /// Lets the next one go on.
    private func endTurn() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isBusy = !state.waiting.isEmpty
            return state.isBusy ? state.waiting.removeFirst() : nil
        }
        next?.resume()
    }

    /// Has a stream go on in the place of the one before.
    private func reopen(
        from place: LiveEventID?, _ turn: Int, since mark: UInt64
    ) async throws -> StreamHub {
        // Who has waited while another one came has lost its place already.
        guard state.withLock({ $0.turns == turn }) else { throw Self.taken }
        // Or it has been ended, and nothing goes on from what is ended.
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
        // Also where another one waits by now, which goes on from here.
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
                // What was sent and never arrived is not known: it comes again, with its token.
                set.queries[index].after = notified
                continue
            }
            // What was declared later had not been told whole: it begins as it was to begin.
            guard let place, place.covers(set.queries[index]) else { continue }
            set.queries[index].since = place.token.position
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
        .taken, APIError(.conflict, "the session has been opened by another stream"))

    /// Notes that a stream is read no more.
    ///
    /// - Returns: The number to ask by whether it was opened again; `nil` if that has happened.
    func close(_ turn: Int) -> Int? {
        state.withLock { state in
            guard state.turns == turn else { return nil }
            state.isOpen = false
            state.turns += 1
            return state.turns
        }
    }

    /// Whether nothing has happened since it was given up.
    func isIdle(since turn: Int) -> Bool {
        state.withLock { $0.turns == turn && !$0.isOpen }
    }

    /// Ends it, for a reason where it is the relay that does.
    func end(saying reason: LiveEnd? = nil) {
        let (session, hub) = state.withLock { ($0.session, $0.hub) }
        if let reason { hub.end(saying: reason) } else { hub.end() }
        access.forget(stream: session.number)
        session.end()
    }

    // MARK: Frames

    /// Works one frame of the client's; what comes of it goes to the stream.
    ///
    /// - Throws: ``LiveEnd`` if it cannot be read, or says goodbye; 429 while another is worked.
    func take(_ frame: [UInt8]) async throws {
        let isNext = state.withLock { state in
            defer { state.isWorking = true }
            return !state.isWorking
        }
        guard isNext else {
            throw APIError(
                .throttled, "a frame is being worked; they are worked in order", retryAfter: 1)
        }
        defer { state.withLock { $0.isWorking = false } }
        await beginTurn()
        defer { endTurn() }
        // A stream that was opened meanwhile may have been refused, which ended the one before.
        guard isAlive else { throw HeldSessions.unknown }
        let session = state.withLock { $0.session }
        try await session.take(frame, isCounted: true)
        guard let identity = session.identity else { return }
        // A user token may have been renewed.
        access.renew(stream: session.number, of: identity)
    }
}

/// The sessions that are held for clients of `EventSource`.
final class HeldSessions: Sendable {
    /// How long one is held without a stream.
    static let patience = Duration.seconds(60)

    private let clock: any Clock<Duration>
    private let sessions = Mutex<[String: HeldSession]>([:])

    init(clock: any Clock<Duration>) {
        self.clock = clock
    }

    /// Holds a session until a stream is opened, for a while.
    func hold(_ session: HeldSession, as secret: String) {
        let turn = sessions.withLock { sessions in
            sessions[secret] = session
            return 0
        }
        expire(secret, unlessOpenedAfter: turn)
    }

    /// The session of this secret.
    ///
    /// - Throws: 404 if there is none, or another container's.
    func session(
        _ secret: String, of container: String?, _ environment: String?
    ) throws(APIError) -> HeldSession {
        let session = sessions.withLock { $0[secret] }
        let key = session?.identity.settings.key
        // Capitals are allowed there, as in every path.
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
        "there is no such session; one is held for \(patience.components.seconds) seconds without "
            + "a stream")

    /// Gives a stream up; its session is held for a while.
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

    /// Ends a session.
    func end(_ secret: String, saying reason: LiveEnd? = nil) {
        sessions.withLock { $0.removeValue(forKey: secret) }?.end(saying: reason)
    }
}
