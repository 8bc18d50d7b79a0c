import Live
import RelayModel
import Storage
import Synchronization

/// The conversation with one client over any kind of connection; its frames are worked in order.
final class LiveSession: Sendable {
    /// The maximum number of bytes in a frame.
    static let frameBytes = 1024 * 1024

    private struct State {
        var identity: LiveIdentity?
        /// The API token from `hello`, because frames that renew the user token do not repeat it.
        var apiToken: String?
        var isOver = false
        /// The feed of the user's inbox, if the client asked for it.
        var feed: InboxFeed?
        /// The charges of its queries, by their names; most queries are free.
        var charges: [String: LiveAccounts.Entry] = [:]
    }

    let number: UInt64
    let access: LiveAccess
    let hub: any LiveHub
    let head: RelayRequest
    private let state = Mutex(State())

    init(_ access: LiveAccess, at hub: any LiveHub, head: RelayRequest) {
        number = access.nextClient()
        self.access = access
        self.hub = hub
        self.head = head
    }

    /// The client's identity, once it is known.
    var identity: LiveIdentity? { state.withLock { $0.identity } }

    /// Returns whether the client depends on what was revoked.
    ///
    /// Each sign-out asks all clients. To copy an identity takes a microsecond, so the session is
    /// compared in place.
    func depends(on revocation: Revocation) -> Bool {
        state.withLock { state in
            if case .session(let session, _) = revocation, state.identity?.session != session {
                return false
            }
            return state.identity.map(revocation.concerns) ?? false
        }
    }

    /// Ends the session; the engine forgets the client.
    func end() {
        let (identity, feed, charges) = state.withLock { state in
            defer {
                (state.identity, state.isOver, state.feed) = (nil, true, nil)
                state.charges = [:]
            }
            return (state.identity, state.feed, state.charges)
        }
        feed?.end()
        access.streams.remove(number)
        access.accounts.leave(charges.values)
        guard let identity else { return }
        access.leave(identity)
        Task { [access, number] in await access.engine.disconnect(number) }
    }

    /// Makes a stream's client catch up from the log after it has fallen behind.
    func lag(at hub: StreamHub) {
        hub.lag { [access, number] lag, untold in
            Task { await access.engine.fallBehind(number, at: lag, untold: untold) }
        } until: { [access, number] lag in
            Task { await access.engine.catchUp(number, from: lag) }
        }
    }

    // MARK: Frames

    /// Works one frame of the client; it counts as a request, unless `isCounted` says that the
    /// request that brought it has been counted.
    ///
    /// - Throws: ``LiveEnd`` if the frame ends the connection.
    func take(_ text: [UInt8], isCounted: Bool = false) async throws(LiveEnd) {
        let reader: JSONReader
        let type: String
        let json = try await access.parsed(text, of: self.identity, at: head)
        do {
            reader = try JSONReader(json)
            type = try reader.require("type", try reader.string("type"))
        } catch {
            throw LiveEnd(.notUnderstood, ErrorMapping(error).apiError)
        }
        guard let identity else {
            guard type == "hello" else {
                throw LiveEnd(
                    .notUnderstood, APIError(.badRequest, "the first frame must be \"hello\""))
            }
            return try await hello(reader)
        }
        switch type {
        case "set": await declare(reader, identity, counts: !isCounted)
        case "get": await get(reader, identity, counts: !isCounted)
        case "fence": await fence(reader)
        case "token": try await renew(reader, identity)
        case "bye": throw LiveEnd(.done, APIError(.badRequest, "the client said goodbye"))
        case "hello":
            throw LiveEnd(.notUnderstood, APIError(.badRequest, "\"hello\" was already sent"))
        // Unknown types are ignored, because a later version may have them.
        default: break
        }
    }

    private func hello(_ reader: JSONReader) async throws(LiveEnd) {
        let set: JSONReader?
        do {
            set = try reader.reader("set")
        } catch {
            throw LiveEnd(.notUnderstood, ErrorMapping(error).apiError)
        }
        let mark = access.revocations
        let (identity, welcome) = try await known(reader)
        try access.arrive(of: identity.settings.key)
        let apiToken = try? reader.string("ckAPIToken")
        state.withLock { $0.apiToken = apiToken }
        try await begin(as: identity, LiveFrame(welcome))
        if let end = access.end(of: identity, since: mark) { throw end }
        if let set { await declare(set, identity) }
    }

    private func known(
        _ hello: JSONReader
    ) async throws(LiveEnd) -> (LiveIdentity, welcome: JSONObject) {
        try await access.turns.take(unless: { state.withLock { $0.isOver } })
        defer { access.turns.give() }
        do throws(LiveEnd) {
            return try await access.identity(hello, at: head)
        } catch {
            access.refusals.count(LiveRefusals.Reason(refusing: error))
            throw error
        }
    }

    /// Admits an authenticated client; `welcome` is sent first.
    func begin(as identity: LiveIdentity, _ welcome: LiveFrame?) async throws(LiveEnd) {
        try access.enter(identity)
        let isOver = state.withLock { state in
            if !state.isOver { state.identity = identity }
            return state.isOver
        }
        guard !isOver else { return access.leave(identity) }
        await access.engine.connect(
            number, at: hub, of: identity.settings.key, as: identity.reader,
            on: identity.device)
        // If the session has ended meanwhile, the engine may have been told of that too early.
        guard !state.withLock({ $0.isOver }) else {
            return await access.engine.disconnect(number)
        }
        if let welcome { hub.post([.send(number, [welcome])]) }
    }

    /// Replaces the user token by another one of the same user; if that is refused, the old one
    /// remains valid until its own end.
    private func renew(
        _ reader: JSONReader, _ identity: LiveIdentity
    ) async throws(LiveEnd) {
        let mark = access.revocations
        var head = self.head
        if let apiToken = state.withLock({ $0.apiToken }) {
            head.query.replace("ckAPIToken", by: apiToken)
        }
        let renewed: LiveIdentity
        do {
            _ = try reader.require("ckWebAuthToken", try reader.string("ckWebAuthToken"))
            renewed = try await access.identity(reader, at: head).0
        } catch {
            return refuse("token", (error as? LiveEnd)?.error ?? ErrorMapping(error).apiError)
        }
        guard renewed.user == identity.user, renewed.isServer == identity.isServer else {
            return refuse(
                "token",
                APIError(
                    .authenticationFailed, "ckWebAuthToken: the token belongs to another user",
                    details: ["liveError": "revoked"]))
        }
        state.withLock { $0.identity = $0.identity?.renewed(by: renewed) }
        if let end = access.end(of: renewed, since: mark) { throw end }
    }

    // MARK: Sets

    /// Applies a set, or sends why it is refused; a set in `hello` is not counted as a request.
    ///
    /// - Returns: Whether the set was applied.
    @discardableResult
    func declare(
        _ reader: JSONReader, _ identity: LiveIdentity, counts: Bool = false
    ) async -> Bool {
        let current = await access.engine.version(of: number) ?? 0
        do {
            if counts { try await access.use(identity) }
            let version = try reader.require("version", try reader.integer("version"))
            guard version > current else {
                throw APIError(
                    .conflict, "version: must be greater than the current version \(current)")
            }
            try await access.turnstile.compiling(for: identity.user, of: identity.settings.key) {
                try await declare(reader, identity, version, current)
            }
            return true
        } catch {
            let mapped = ErrorMapping(error).apiError
            var object: JSONObject = ["type": "state", "state": "error"]
            object["version"] = reader.value("version") ?? .integer(current)
            object["inForce"] = .integer(current)
            object.members += mapped.json(uuid: head.uuid).members
            hub.post([.send(number, [LiveFrame(object)])])
            return false
        }
    }

    private func declare(
        _ reader: JSONReader, _ identity: LiveIdentity, _ version: Int64, _ current: Int64
    ) async throws {
        try reader.allowOnly([
            "type", "version", "queries", "base", "add", "update", "remove", "ifExists",
        ])
        let edit = try LiveSetEdit(reader, current: current)
        // Reading the queries is what costs time, and each may add an error to the answer. The list
        // of queries and the list of removals may have the same length.
        let count = max(edit.queries.count, edit.removed?.count ?? 0)
        guard count <= 2 * access.bounds.queriesPerSet else { throw tooMany(count) }
        let known = await access.engine.queries(of: number)
        let reading = try await access.reading(for: identity)
        let going = discharge { edit.ends($0) }
        var charges: [String: LiveAccounts.Entry] = [:]
        do {
            try await declare(edit, known, reading, version, identity, &charges)
            charge(charges)
        } catch {
            access.accounts.leave(charges.values)
            access.accounts.enter(going.values)
            charge(going)
            throw error
        }
    }

    private func tooMany(_ count: Int) -> APIError {
        APIError(
            .quotaExceeded,
            "queries: \(count) in one set; at most \(access.bounds.queriesPerSet) are allowed")
    }

    /// Removes the charges of queries that end, so that their replacements are judged without them.
    private func discharge(_ goes: (String) -> Bool) -> [String: LiveAccounts.Entry] {
        let going = state.withLock { state in
            let going = state.charges.filter { goes($0.key) }
            for name in going.keys { state.charges[name] = nil }
            return going
        }
        access.accounts.leave(going.values)
        return going
    }

    /// Notes charges that have been entered, so that they are given back at the end.
    private func charge(_ charges: [String: LiveAccounts.Entry]) {
        let isOver = state.withLock { state in
            if !state.isOver { state.charges.merge(charges) { _, new in new } }
            return state.isOver
        }
        if isOver { access.accounts.leave(charges.values) }
    }

    /// The charges of its queries.
    var charges: [String: LiveAccounts.Entry] { state.withLock { $0.charges } }

    /// Takes over the charges of the same queries from another session of the client.
    func take(_ charges: [String: LiveAccounts.Entry]) {
        access.accounts.enter(charges.values)
        charge(charges)
    }

    private func declare(
        _ edit: LiveSetEdit, _ known: [String: LiveQuery], _ reading: LiveQueryReading,
        _ version: Int64, _ identity: LiveIdentity, _ charges: inout [String: LiveAccounts.Entry]
    ) async throws {
        var declared: [DeclaredQuery] = []
        var faults: [JSONValue] = []
        for (index, (json, path, place)) in edit.queries.enumerated() {
            // Reading a set of the longest conditions takes seconds, during which other work has
            // its turns.
            if index > 0 { await Task.yield() }
            do {
                let (query, charge) = try await reading.declared(json, path: path)
                guard
                    try edit.admits(
                        query, isNamed: LiveSetEdit.isNamed(json), as: place, among: declared,
                        known, path: path)
                else { continue }
                declared.append(query)
                // Charged at once, so that the next query of the set is judged in addition to it.
                if let charge {
                    access.accounts.enter([charge])
                    charges[query.id] = charge
                }
            } catch {
                var name: JSONValue?
                if case .object(let object) = json { name = object["id"] }
                faults.append(fault(name, ErrorMapping(error).apiError))
            }
        }
        for name in edit.removed ?? [] where known[name] == nil {
            let error = APIError(
                .notFound, "remove: there is no query \"\(name.shortened)\"",
                details: ["liveError": "unknownQuery"])
            faults.append(fault(.string(name), error))
        }
        let feeds = edit.inboxes(after: declared, known)
        if feeds > 1 {
            let error = APIError(
                .quotaExceeded, "a set may have at most one query of notifications")
            let last = declared.last { $0.query.kind == .notifications }
            faults.append(fault(last.map { .string($0.id) }, error))
        }
        guard faults.isEmpty else {
            throw APIError(
                .badRequest,
                "the set is refused as a whole, because \(faults.count) of its queries cannot be "
                    + "shown",
                details: ["queries": .array(faults)])
        }
        let count = edit.count(after: declared, known)
        guard count <= access.bounds.queriesPerSet else { throw tooMany(count) }
        // A complete set is as of now, and not as of the position that happens to be followed to.
        try await access.engine.reachHead()
        try await declare(
            LiveSet(version: version, declared, removing: edit.removed, under: reading.version),
            identity)
    }

    /// Applies an edit as a whole, and begins the inbox feed if the edit asks for it.
    func declare(_ set: LiveSet, _ identity: LiveIdentity) async throws {
        let former = feed
        if let former, former.isOver { await access.engine.end(inbox: former.id, of: number) }
        let verified = await access.engine.verified(set)
        try await access.engine.declare(verified, by: number)
        let known = await access.engine.queries(of: number)
        let isInForce = former.map { !$0.isOver && known[$0.id] == $0.query } ?? false
        if !isInForce { follow(nil) }
        let asked = set.queries.first { $0.query.kind == .notifications }
        guard !isInForce, let asked else { return }
        let feed = InboxFeed(
            asked, of: identity, to: number, at: hub, from: access.inboxes,
            whileKept: access.keepsInbox(identity.settings.key), store: access.storeIdentity)
        follow(feed)
        await feed.begin()
    }

    /// The feed of the user's inbox, if the client asked for it.
    var feed: InboxFeed? { state.withLock { $0.feed } }

    private func follow(_ feed: InboxFeed?) {
        let (former, isOver) = state.withLock { state in
            defer { state.feed = state.isOver ? nil : feed }
            return (state.feed, state.isOver)
        }
        former?.end()
        if isOver { feed?.end() }
    }

    private func fault(_ id: JSONValue?, _ error: APIError) -> JSONValue {
        var fault = JSONObject()
        fault["id"] = id
        fault["error"] = .object(error.json(uuid: head.uuid))
        return .object(fault)
    }
}
