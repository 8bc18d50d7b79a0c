import Live
import RelayModel
import Storage
import Synchronization

/// One client's talk with the relay, whatever it comes over: what it says is worked in order.
final class LiveSession: Sendable {
    /// Bytes of one frame.
    static let frameBytes = 1024 * 1024

    private struct State {
        var identity: LiveIdentity?
        var isOver = false
        /// What tells the client of its user's inbox.
        var feed: InboxFeed?
        /// What its queries are charged, by their names; those of most cost nothing.
        var charges: [String: LiveAccounts.Entry] = [:]
    }

    let number: UInt64
    private let door: LiveDoor
    private let hub: any LiveHub
    private let head: RelayRequest
    private let state = Mutex(State())

    init(_ door: LiveDoor, at hub: any LiveHub, head: RelayRequest) {
        number = door.nextClient()
        self.door = door
        self.hub = hub
        self.head = head
    }

    /// Who it is, once that is known.
    var identity: LiveIdentity? { state.withLock { $0.identity } }

    /// Ends it: the engine forgets the client.
    func end() {
        let (identity, feed, charges) = state.withLock { state in
            defer {
                (state.identity, state.isOver, state.feed) = (nil, true, nil)
                state.charges = [:]
            }
            return (state.identity, state.feed, state.charges)
        }
        feed?.end()
        door.accounts.leave(charges.values)
        guard let identity else { return }
        door.leave(identity)
        Task { [door, number] in await door.engine.disconnect(number) }
    }

    // MARK: Frames

    /// Works one frame of the client's.
    ///
    /// - Throws: ``LiveEnd`` if the connection ends with it.
    func take(_ text: [UInt8]) async throws(LiveEnd) {
        let reader: JSONReader
        let type: String
        do {
            reader = try JSONReader(try JSONValue(parsing: text))
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
        case "set": await declare(reader, identity)
        case "get": await get(reader, identity)
        case "fence": await fence(reader)
        case "token": try await renew(reader, identity)
        case "bye": throw LiveEnd(.goingAway, APIError(.badRequest, "the client said goodbye"))
        case "hello":
            throw LiveEnd(.notUnderstood, APIError(.badRequest, "\"hello\" was said before"))
        // What a later version may say is no fault.
        default: break
        }
    }

    private func hello(_ reader: JSONReader) async throws(LiveEnd) {
        let (identity, welcome) = try await door.identity(reader, at: head)
        try door.arrive()
        try await begin(as: identity, LiveFrame(welcome))
        if let set = try? reader.reader("set") { await declare(set, identity) }
    }

    /// Lets a client in who is known; `welcome` is told first.
    func begin(as identity: LiveIdentity, _ welcome: LiveFrame?) async throws(LiveEnd) {
        try door.enter(identity)
        let isOver = state.withLock { state in
            if !state.isOver { state.identity = identity }
            return state.isOver
        }
        guard !isOver else { return door.leave(identity) }
        await door.engine.connect(
            number, at: hub, of: identity.settings.key, as: identity.reader,
            on: identity.device)
        if let welcome { hub.post([.send(number, [welcome])]) }
    }

    private func renew(_ reader: JSONReader, _ identity: LiveIdentity) async throws(LiveEnd) {
        let (renewed, _) = try await door.identity(reader, at: head)
        guard renewed.user == identity.user, renewed.isServer == identity.isServer else {
            return refuse(
                "token",
                APIError(
                    .authenticationFailed, "ckWebAuthToken: it is another user's",
                    details: ["liveError": "revoked"]))
        }
        state.withLock { state in
            if state.identity != nil { state.identity = renewed }
        }
    }

    // MARK: Sets

    /// Takes a set, or says why not.
    func declare(_ reader: JSONReader, _ identity: LiveIdentity) async {
        let current = await door.engine.version(of: number) ?? 0
        do {
            let version = try reader.require("version", try reader.integer("version"))
            guard version > current else {
                throw APIError(
                    .conflict, "version: \(current) is in force; a new set has a larger one")
            }
            try await door.turnstile.compiling(for: identity.user, of: identity.settings.key) {
                try await declare(reader, identity, version, current)
            }
        } catch {
            let mapped = ErrorMapping(error).apiError
            var object: JSONObject = ["type": "state", "state": "error"]
            object["version"] = reader.value("version") ?? .integer(current)
            object["inForce"] = .integer(current)
            object.members += mapped.json(uuid: head.uuid).members
            hub.post([.send(number, [LiveFrame(object)])])
        }
    }

    private func declare(
        _ reader: JSONReader, _ identity: LiveIdentity, _ version: Int64, _ current: Int64
    ) async throws {
        try reader.allowOnly([
            "type", "version", "queries", "base", "add", "update", "remove", "ifExists",
        ])
        let edit = try LiveSetEdit(reader, current: current)
        let known = await door.engine.queries(of: number)
        let reading = try await door.reading(for: identity)
        let going = discharge { edit.ends($0) }
        var charges: [String: LiveAccounts.Entry] = [:]
        do {
            try await declare(edit, known, reading, version, identity, &charges)
            charge(charges)
        } catch {
            door.accounts.leave(charges.values)
            door.accounts.enter(going.values)
            charge(going)
            throw error
        }
    }

    /// Takes what queries that go are charged out of the accounts, so that what comes in their
    /// places is weighed without them.
    private func discharge(_ goes: (String) -> Bool) -> [String: LiveAccounts.Entry] {
        let going = state.withLock { state in
            let going = state.charges.filter { goes($0.key) }
            for name in going.keys { state.charges[name] = nil }
            return going
        }
        door.accounts.leave(going.values)
        return going
    }

    /// Notes what is charged already, to be given back at the end.
    private func charge(_ charges: [String: LiveAccounts.Entry]) {
        let isOver = state.withLock { state in
            if !state.isOver { state.charges.merge(charges) { _, new in new } }
            return state.isOver
        }
        if isOver { door.accounts.leave(charges.values) }
    }

    /// What its queries are charged.
    var charges: [String: LiveAccounts.Entry] { state.withLock { $0.charges } }

    /// Charges what another session of the client was charged for the same queries.
    func take(_ charges: [String: LiveAccounts.Entry]) {
        door.accounts.enter(charges.values)
        charge(charges)
    }

    private func declare(
        _ edit: LiveSetEdit, _ known: [String: LiveQuery], _ reading: LiveQueryReading,
        _ version: Int64, _ identity: LiveIdentity, _ charges: inout [String: LiveAccounts.Entry]
    ) async throws {
        var declared: [DeclaredQuery] = []
        var faults: [JSONValue] = []
        for (json, path, isNew) in edit.queries {
            do {
                let (query, charge) = try reading.declared(json, path: path)
                try edit.check(query, isNew: isNew, among: declared, known, path: path)
                declared.append(query)
                // At once, so that the next of the set is weighed beside it.
                if let charge {
                    door.accounts.enter([charge])
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
            let error = APIError(.quotaExceeded, "a set has one query of notifications at most")
            faults.append(fault(nil, error))
        }
        guard faults.isEmpty else {
            throw APIError(
                .badRequest,
                "a set is taken whole or not at all: \(faults.count) of its queries "
                    + "cannot be shown", details: ["queries": .array(faults)])
        }
        let count = edit.count(after: declared, known)
        let most = door.bounds.queriesPerSet
        guard count <= most else {
            throw APIError(
                .quotaExceeded, "queries: \(count) in one set; allowed are \(most)")
        }
        // What is complete is as of now, and not of what has been followed by chance.
        try await door.engine.reachHead()
        try await declare(
            LiveSet(version: version, declared, removing: edit.removed, under: reading.version),
            identity)
    }

    /// Takes an edit whole, and follows the inbox if it asks for that.
    func declare(_ set: LiveSet, _ identity: LiveIdentity) async throws {
        try await door.engine.declare(set, by: number)
        let former = feed
        let known = await door.engine.queries(of: number)
        let isInForce = former.map { known[$0.id] == $0.query } ?? false
        if !isInForce { follow(nil) }
        let asked = set.queries.first { $0.query.kind == .notifications }
        guard !isInForce, let asked else { return }
        let feed = InboxFeed(
            asked, of: identity, to: number, at: hub, from: door.inboxes,
            store: door.storeIdentity)
        follow(feed)
        await feed.begin()
    }

    /// What tells the client of its user's inbox, if it asked for that.
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

    // MARK: Once

    private func get(_ reader: JSONReader, _ identity: LiveIdentity) async {
        do {
            let id = try reader.require("id", try reader.string("id"))
            let json = try reader.require("query", reader.value("query"))
            let reading = try await door.reading(for: identity)
            let query = try reading.declared(json, path: "query").query
            guard query.query.kind == .result else {
                throw reader.failure("query", "a result is got once; changes are declared")
            }
            try await door.engine.get(id, query, under: reading.version, for: number)
        } catch {
            refuse(reader.value("id"), ErrorMapping(error).apiError)
        }
    }

    private func fence(_ reader: JSONReader) async {
        do {
            let id = try reader.require("id", try reader.string("id"))
            try await door.engine.fence(id, of: number)
        } catch {
            refuse(reader.value("id"), ErrorMapping(error).apiError)
        }
    }

    private func refuse(_ id: JSONValue?, _ error: APIError) {
        var object: JSONObject = ["type": "refused"]
        object["id"] = id
        object.members += error.json(uuid: head.uuid).members
        hub.post([.send(number, [LiveFrame(object)])])
    }
}

/// What a `set` says is to be done.
struct LiveSetEdit {
    /// The queries, where they stand, and whether they may not be there yet.
    private(set) var queries: [(json: JSONValue, path: String, isNew: Bool)] = []
    /// The names of those that go; `nil` ends all others.
    private(set) var removed: [String]?
    private let refusesSame: Bool

    /// Reads the whole list, or an edit of the version in force.
    ///
    /// - Throws: `JSONContractError`; 409 if the edit is of another version.
    init(_ reader: JSONReader, current: Int64) throws {
        enum Existing: String, CaseIterable { case keep, error }
        refusesSame = try reader.choice("ifExists", as: Existing.self) == .error
        if let list = try reader.array("queries") {
            for name in ["base", "add", "update", "remove"] where reader.value(name) != nil {
                throw reader.failure(name, "\"queries\" is the whole list; an edit has a base")
            }
            queries = list.enumerated().map { ($1, reader.path(of: "queries[\($0)]"), false) }
            return
        }
        let base = try reader.require("base", try reader.integer("base"))
        guard base == current else {
            throw APIError(.conflict, "base: \(base) is not in force, but \(current)")
        }
        for (index, json) in (try reader.array("add") ?? []).enumerated() {
            queries.append((json, reader.path(of: "add[\(index)]"), true))
        }
        for (index, json) in (try reader.array("update") ?? []).enumerated() {
            queries.append((json, reader.path(of: "update[\(index)]"), false))
        }
        removed = try reader.strings("remove") ?? []
    }

    /// Refuses what is there already.
    ///
    /// - Throws: 409.
    func check(
        _ query: DeclaredQuery, isNew: Bool, among others: [DeclaredQuery],
        _ known: [String: LiveQuery], path: String
    ) throws(APIError) {
        let isTaken = isNew && known[query.id] != nil && removed?.contains(query.id) != true
        guard !isTaken, !others.contains(where: { $0.id == query.id }) else {
            throw APIError(
                .exists, "\(path).id: there is a query \"\(query.id.shortened)\" already",
                details: ["liveError": "duplicateQuery"])
        }
        guard refusesSame else { return }
        let isSame =
            known.contains { $0.key != query.id && $0.value.shows(theSameAs: query.query) }
            || others.contains { $0.query == query.query }
        guard !isSame else {
            throw APIError(
                .exists, "\(path): the same query is there already",
                details: ["liveError": "duplicateQuery"])
        }
    }

    /// Whether the query of this name goes, or is declared anew.
    func ends(_ name: String) -> Bool {
        guard let removed else { return true }
        return removed.contains(name)
            || queries.contains { json, _, isNew in
                guard !isNew, case .object(let object) = json else { return false }
                return object["id"] == .string(name)
            }
    }

    /// How many queries of notifications there will be.
    func inboxes(after declared: [DeclaredQuery], _ known: [String: LiveQuery]) -> Int {
        var kinds = removed == nil ? [:] : known.mapValues(\.kind)
        for name in removed ?? [] { kinds[name] = nil }
        for query in declared { kinds[query.id] = query.query.kind }
        return kinds.values.count { $0 == .notifications }
    }

    /// How many queries there will be.
    func count(after declared: [DeclaredQuery], _ known: [String: LiveQuery]) -> Int {
        let names = Set(declared.map(\.id))
        guard let removed else { return names.count }
        return names.union(known.keys).subtracting(removed.filter { !names.contains($0) }).count
    }
}
