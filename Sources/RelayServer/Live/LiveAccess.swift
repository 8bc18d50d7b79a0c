import Fanout
import HTTPTypes
import Live
import Logging
import RelayModel
import Storage
import Synchronization

/// What all kinds of live connections share: the admission of clients, and the limits on them.
final class LiveAccess: Sendable {
    let bounds: LiveBounds
    let engine: LiveEngine
    let clients: ClientAdmission
    let shadow: any Shadow
    let form: LiveRecordForm
    let limits: RequestLimits
    let turnstile: Turnstile
    let indexes: IndexDirectory
    let accounts: LiveAccounts
    let inboxes: any InboxRegistry
    /// The devices that are connected.
    let presence: LivePresence
    /// The store's mark in tokens.
    let store: String
    let storeIdentity: UUIDBytes
    let identifiers: RandomIdentifiers
    /// The clients that are answered over HTTP.
    let streams = StreamHubs()
    /// The sessions of `EventSource` clients.
    let held: HeldSessions
    /// The bound on what all clients together leave untaken.
    let backlog = LiveBacklog()
    /// The bound on frames that sockets hold and that have not been worked.
    let frames = FrameRoom()
    /// The turns in which the `hello` frames of sockets are judged.
    let turns = HelloTurns()
    /// The counters of refused clients.
    let refusals: LiveRefusals
    private let now: @Sendable () -> Timestamp
    private let state = Mutex(State())

    private struct State {
        var lastClient: UInt64 = 0
        var counts: [Holder: Int] = [:]
        var containers: [ContainerKey: Int] = [:]
        /// The number of connections, streams and polls.
        var count = 0
        var newcomers = LiveNewcomers()
        /// The streams, each with the end of a user token that its client was warned of.
        var streams: [UInt64: (identity: LiveIdentity, hub: StreamHub, notice: TokenNotice)] = [:]
        var revocations = LiveRevocations()

        /// Removes and returns the streams of matching identities.
        mutating func takeStreams(
            where fits: (LiveIdentity) -> Bool
        ) -> [(number: UInt64, hub: StreamHub)] {
            let ending = streams.filter { fits($0.value.identity) }
            for number in ending.keys { streams[number] = nil }
            return ending.map { ($0.key, $0.value.hub) }
        }
    }

    /// A user in a container, whose connections are counted together.
    private struct Holder: Hashable {
        let container: ContainerKey
        let user: UserID

        init(_ identity: LiveIdentity) {
            container = identity.settings.key
            user = identity.user
        }
    }

    init(
        _ engine: LiveEngine, bounds: LiveBounds, form: LiveRecordForm, clients: ClientAdmission,
        shadow: any Shadow,
        limits: RequestLimits, turnstile: Turnstile, indexes: IndexDirectory,
        inboxes: any InboxRegistry, presence: LivePresence, store: UUIDBytes,
        identifiers: RandomIdentifiers, refusals: LiveRefusals, clock: any Clock<Duration>,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.engine = engine
        self.bounds = bounds
        self.form = form
        self.clients = clients
        self.shadow = shadow
        self.limits = limits
        self.turnstile = turnstile
        self.indexes = indexes
        accounts = LiveAccounts(indexes)
        self.inboxes = inboxes
        self.presence = presence
        self.store = StoreMark(store).text
        storeIdentity = store
        self.identifiers = identifiers
        held = HeldSessions(clock: clock)
        self.refusals = refusals
        self.now = now
    }

    /// Returns a number that no client had before.
    func nextClient() -> UInt64 {
        state.withLock { state in
            state.lastClient += 1
            return state.lastClient
        }
    }

    /// Admits a page by the origin that its browser names.
    ///
    /// - Throws: 403 for a page that the configuration does not allow.
    func admit(origin: String?) throws(APIError) {
        guard !bounds.admits(origin: origin) else { return }
        refusals.count(.origin)
        throw APIError(
            .accessDenied,
            "pages of \((origin ?? "").shortened) may not connect; live.allowedOrigins lists the "
                + "origins that may")
    }

    // MARK: Hello

    /// Authenticates a client by the credentials in its `hello` or in the head of its request.
    ///
    /// - Throws: ``LiveEnd``.
    func identity(
        _ hello: JSONReader, at head: RelayRequest
    ) async throws(LiveEnd) -> (LiveIdentity, welcome: JSONObject) {
        do {
            return try await admitted(hello, at: head)
        } catch {
            if AuthenticationRefusal.isBehind(error) { turnstile.noteRefused(head.peer) }
            throw LiveEnd(refusing: error)
        }
    }

    private func admitted(
        _ hello: JSONReader, at head: RelayRequest
    ) async throws -> (LiveIdentity, welcome: JSONObject) {
        try turnstile.arrive(head.peer)
        var request = head
        request.receivedAt = now()
        for name in ["ckAPIToken", "ckWebAuthToken"] {
            if let value = try hello.string(name) { request.query.replace(name, by: value) }
        }
        let admission = try await clients.admit(request)
        try turnstile.use(key: admission.key.id, of: admission.caller.settings)
        return try identity(hello, admission, request)
    }

    /// Returns the identity of an admitted request, with the details that `hello` adds.
    func identity(
        _ hello: JSONReader, _ admission: HeadAdmission, _ request: RelayRequest
    ) throws -> (LiveIdentity, welcome: JSONObject) {
        let device: DeviceID? = try hello.identifier("deviceID")
        enum Form: String, CaseIterable { case typed, plain }
        let form: Form = try hello.choice("format") ?? .typed
        let caller = admission.caller.caller
        let isServer = caller.proof != .apiToken
        let isSigned = if case .signature = caller.proof { true } else { false }
        let key = Caller.identity(ofKey: admission.key.id, container: caller.container)
        let user = isServer ? caller.user ?? key : try admission.caller.user()
        let token = Authenticator.userToken(of: request)
        let identity = LiveIdentity(
            settings: admission.caller.settings, user: user, namesUser: caller.user != nil,
            device: device, isServer: isServer, keyID: admission.key.id, session: admission.session,
            endsAt: isServer ? nil : token.flatMap(SessionService.end),
            form: LiveForm(
                isPlain: form == .plain,
                writesNumbersAsTexts: try hello.bool("numbersAsStrings") ?? false),
            isSigned: isSigned)
        return (identity, welcome(identity, token: admission.token, at: request.receivedAt))
    }

    private func welcome(
        _ identity: LiveIdentity, token: String?, at now: Timestamp
    ) -> JSONObject {
        var welcome: JSONObject = ["type": "welcome"]
        if identity.namesUser { welcome["userRecordName"] = .string(identity.user.rawValue) }
        welcome["mine"] = identity.device.map { .string(form.name(of: $0, identity.user)) }
        welcome["ckWebAuthToken"] = token.map { .string($0) }
        welcome["time"] = .integer(now.milliseconds)
        welcome["heartbeat"] = .integer(LiveTimes.heartbeat.components.seconds)
        welcome["limits"] = [
            "queries": .integer(Int64(bounds.queriesPerSet)),
            "frameBytes": .integer(Int64(LiveSession.frameBytes)),
        ]
        return welcome
    }

    /// Counts a connection that the relay ends, by its code.
    func count(_ end: LiveEnd) { refusals.count(ended: end) }

    /// Counts a stream that has ended, if the relay ended it and has not counted that yet.
    func count(_ stream: StreamHub) {
        if let end = stream.cause { count(end) }
    }

    // MARK: How often

    /// Counts a request over a client's connection, for its user and key.
    ///
    /// - Throws: 429 if requests come too often.
    func use(_ identity: LiveIdentity, countsKey: Bool = true) async throws {
        // By the current rates, which may have changed since the client connected.
        let settings = try await clients.registry.settings(of: identity.settings.key)
        if countsKey { try turnstile.use(key: identity.keyID, of: settings) }
        if identity.namesUser { try turnstile.use(user: identity.user, of: settings) }
    }

    // MARK: How many

    /// Counts an authenticated client of `container` that begins a connection or a stream.
    ///
    /// - Throws: ``LiveEnd`` with the time to come back.
    func arrive(of container: ContainerKey) throws(LiveEnd) {
        let (moment, most) = (now(), bounds.hellosPerSecond)
        let wait = state.withLock {
            $0.newcomers.take(at: moment, of: container, most: most)
        }
        guard let wait else { return }
        refusals.count(.hellosPerSecond)
        throw LiveEnd(
            .notNow,
            APIError(
                .tryAgainLater,
                "too many clients are connecting: at most \(most) may begin in a second",
                retryAfter: wait))
    }

    /// Takes a place for a connection of the user.
    ///
    /// - Throws: ``LiveEnd`` if the relay, the container or the user has the maximum number of
    ///   connections.
    func enter(_ identity: LiveIdentity) throws(LiveEnd) {
        let holder = identity.isServer ? nil : Holder(identity)
        let container = identity.settings.key
        let refusal: LiveRefusals.Reason? = state.withLock { state in
            guard state.count < bounds.connections else { return .connections }
            guard state.containers[container, default: 0] < bounds.containerConnections else {
                return .connectionsPerContainer
            }
            if let holder {
                guard state.counts[holder, default: 0] < bounds.connectionsPerUser else {
                    return .connectionsPerUser
                }
                state.counts[holder, default: 0] += 1
            }
            state.containers[container, default: 0] += 1
            state.count += 1
            return nil
        }
        guard let refusal else { return }
        refusals.count(refusal)
        throw bounds.end(refusing: refusal)
    }

    /// Gives the place of a connection back.
    func leave(_ identity: LiveIdentity) {
        let holder = identity.isServer ? nil : Holder(identity)
        let container = identity.settings.key
        state.withLock { state in
            state.count -= 1
            state.containers[container, default: 1] -= 1
            if state.containers[container] == 0 { state.containers[container] = nil }
            guard let holder else { return }
            state.counts[holder, default: 1] -= 1
            if state.counts[holder] == 0 { state.counts[holder] = nil }
        }
    }

    // MARK: Streams

    /// The number of revocations so far; ask for it before you check whether a client may connect.
    var revocations: UInt64 { state.withLock { $0.revocations.count } }

    /// Returns the end of a client that was revoked while it was being admitted; `nil` if it may
    /// stay.
    func end(of identity: LiveIdentity, since mark: UInt64) -> LiveEnd? {
        state.withLock { $0.revocations.end(of: identity, since: mark) }
    }

    /// Updates the identity of a stream.
    func renew(stream number: UInt64, of identity: LiveIdentity) {
        state.withLock { $0.streams[number]?.identity = identity }
    }

    /// Notes a stream, so that it can be ended.
    func note(_ hub: StreamHub, of identity: LiveIdentity, _ number: UInt64) {
        state.withLock { state in
            let notice = state.streams[number]?.notice ?? TokenNotice()
            state.streams[number] = (identity, hub, notice)
        }
    }

    /// Returns whether a stream is noted and has not been ended.
    func knows(stream number: UInt64) -> Bool {
        state.withLock { $0.streams[number] != nil }
    }

    /// Forgets a stream.
    func forget(stream number: UInt64) {
        state.withLock { $0.streams[number] = nil }
    }

    /// Ends the streams and polls that depend on what was revoked.
    func end(_ revocation: Revocation) {
        let ending = state.withLock { state in
            state.revocations.note(revocation)
            return state.takeStreams { revocation.concerns($0) }
        }
        end(ending, saying: { _ in revocation.end })
        streams.endPolls(revocation)
    }

    /// Does the periodic work of streams, every few seconds: ends those whose user tokens have
    /// ended, warns those whose tokens are about to end, and sometimes sends how far everything has
    /// been told.
    func look(at moment: Timestamp, beats: Bool) async {
        endStreams(.tokenEnded) { $0.endsAt.map { $0 <= moment } ?? false }
        notice(at: moment)
        for hub in state.withLock({ $0.streams.values.map { $0.hub } }) { hub.weigh() }
        guard beats else { return }
        await engine.beat(state.withLock { Array($0.streams.keys) })
    }

    /// Ends the streams of matching identities, each with a last frame that says why.
    private func endStreams(_ end: LiveEnd, where fits: (LiveIdentity) -> Bool) {
        endStreams(where: fits, saying: { _ in end })
    }

    /// Ends the streams of matching identities, with a last frame that may differ for each.
    func endStreams(
        where fits: (LiveIdentity) -> Bool = { _ in true }, saying end: (UInt64) -> LiveEnd
    ) {
        self.end(state.withLock { $0.takeStreams(where: fits) }, saying: end)
    }

    private func end(
        _ ending: [(number: UInt64, hub: StreamHub)], saying end: (UInt64) -> LiveEnd
    ) {
        for (number, hub) in ending {
            let last = end(number)
            count(last)
            hub.end(telling: last.bye(uuid: identifiers.uuid()))
        }
    }

    /// Tells each stream once that its user token is about to end.
    private func notice(at moment: Timestamp) {
        let ending = state.withLock { state in
            var ending: [(number: UInt64, hub: StreamHub, seconds: Int64)] = []
            for (number, stream) in state.streams {
                var notice = stream.notice
                guard let endsAt = stream.identity.endsAt,
                    let seconds = notice.seconds(until: endsAt, at: moment)
                else { continue }
                state.streams[number]?.notice = notice
                ending.append((number, stream.hub, seconds))
            }
            return ending
        }
        for (number, hub, seconds) in ending {
            hub.post([
                .send(
                    number,
                    [LiveFrame(["type": "tokenExpires", "seconds": .integer(seconds)])])
            ])
        }
    }

    // MARK: Queries

    /// Returns a reader of queries for the container's current schema.
    func reading(for identity: LiveIdentity) async throws -> LiveQueryReading {
        // The version comes first: queries read under a schema that changes meanwhile are refused.
        let version = await engine.schema(of: identity.settings.key)
        let schema = try await shadow.schema(of: identity.settings.key)
        form.note(schema, of: identity.settings.key)
        return LiveQueryReading(
            client: identity, schema: schema, version: version, limits: limits, indexes: indexes,
            accounts: accounts, store: store, storeIdentity: storeIdentity,
            bodies: clients.bodies, keepsInbox: keepsInbox(identity.settings.key))
    }

    /// Returns a function that says whether a container keeps notifications at the moment.
    func keepsInbox(_ key: ContainerKey) -> @Sendable () async throws -> Bool {
        { [clients] in try await clients.registry.settings(of: key).keepsInbox }
    }
}
