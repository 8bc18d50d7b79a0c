import Live
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization

/// Connected clients of the relay: they connect, are cut off, lose the relay, and come back, while
/// records of a type of their own change.
///
/// Whenever the simulation checks, a client's results must equal "judge all, sort all, cut" over
/// the records of the store, and its changes must be those of the log, each once. A client may
/// begin anew and be told of a gap only if the log was pruned while it was away or before it had
/// been told everything. Some clients are cut off, and lose the relay, before they have been told
/// everything.
///
/// The events are drawn from the seed. How far the engine has come by then is not, so a life does
/// not repeat exactly. No check depends on it.
struct SimulatedAudience {
    private static let type: RecordType = Fixtures.identifier("Painting")
    private static let place = RecordPlace(
        container: Fixtures.container, database: .public, owner: nil)
    private static let bound: Int64 = 5
    private static let queries = [
        "all": query(.result, nil), "cheap": query(.result, bound),
        "first": window(.first(3)), "last": window(.last(2)), "changes": query(.changes, bound),
    ]

    private let store: RelayStore
    private var generator: SeededGenerator
    private var engine: LiveEngine
    private var following: Task<Void, Never>
    private let clients: [ModelClient]
    private var versions: [Int64]
    private var isConnected: [Bool]
    /// The head of the log when each client's changes began.
    private var beginnings: [LogPosition?]
    /// Whether the log was pruned while a client was away or before it had been told everything.
    private var mayReset: [Bool]
    /// The positions of changes that fit the query, and the position up to which the log was read.
    private var fitting: [LogPosition] = []
    private var read = LogPosition.start
    private var lives: UInt64 = 0
    private(set) var looks = 0

    init(seed: UInt64, store: RelayStore) {
        self.store = store
        generator = SeededGenerator(seed: seed ^ 0x11FE)
        clients = (1...3).map { number in
            ModelClient(number, as: .user(Fixtures.identifier("viewer\(number)")))
        }
        versions = clients.map { _ in 0 }
        isConnected = clients.map { _ in false }
        beginnings = clients.map { _ in nil }
        mayReset = clients.map { _ in false }
        (engine, following) = Self.engine(on: store, seed: seed)
    }

    private static func engine(
        on store: RelayStore, seed: UInt64
    ) -> (LiveEngine, Task<Void, Never>) {
        let engine = LiveEngine(
            log: store, shadow: store, writing: PlainForm(), store: "store", seed: seed,
            clock: ContinuousClock(),
            logger: .silent)
        return (engine, Task { try? await engine.follow() })
    }

    private static func query(_ kind: LiveQuery.Kind, _ bound: Int64?) -> LiveQuery {
        var subscription = Fixtures.subscription(
            "live", of: "viewer1", on: type.rawValue,
            where: bound.map { "price < \($0)" } ?? "TRUEPREDICATE")
        subscription.suppress = .none
        return LiveQuery(kind, subscription, form: LiveForm())
    }

    private static func window(_ limit: LiveLimit) -> LiveQuery {
        var query = query(.result, bound + 3)
        query.order = [LiveSortKey("price")]
        query.limit = limit
        return query
    }

    // MARK: What happens

    /// Lets a random event happen, or none.
    ///
    /// - Returns: A sentence about a broken promise, or `nil`.
    mutating func act(at now: Timestamp) async throws -> String? {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<3: try await edit(at: now)
        case 3: try await post(at: now)
        case 4: await cut(Int.random(in: 0..<clients.count, using: &generator))
        case 5: try await come(Int.random(in: 0..<clients.count, using: &generator))
        case 6: return try await look()
        default: break
        }
        return nil
    }

    /// Clients of the relay itself change some records in one request.
    private mutating func edit(at now: Timestamp) async throws {
        let edits = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
            let isDeletion = generator.chance(25)
            var edit = RecordEdit(
                isDeletion ? .forceDelete : .forceReplace, RecordID(recordName: name()),
                type: Self.type)
            if !isDeletion { edit.fields = fields() }
            return edit
        }
        _ = try await store.modify(
            edits, in: Self.place,
            by: RecordEditor(userID: Fixtures.identifier("painter"), isServer: true),
            atomicity: .independent, additions: [RecordTypeDefinition(Self.type, isInferred: true)],
            at: now)
    }

    /// Posts a change of a source, which has no state before the change, and may have missed
    /// changes.
    private mutating func post(at now: Timestamp) async throws {
        // The relay knows nothing of the type until a client has written a record of it.
        guard try await !kept().isEmpty else { return }
        let operation = ChangeOperation.allCases[Int.random(in: 0..<3, using: &generator)]
        var change = RecordChange(operation, of: Self.type, RecordID(recordName: name()))
        if operation != .delete { change.after = RecordImage(fields()) }
        _ = try await store.append(
            [ChangeToAppend(change, key: nil)], container: Fixtures.container,
            source: Fixtures.identifier("test"), at: now)
    }

    private mutating func name() -> RecordName {
        Fixtures.identifier("p\(Int.random(in: 0..<8, using: &generator))")
    }

    private mutating func fields() -> RecordFields {
        ["price": .integer(.random(in: 0..<12, using: &generator))]
    }

    /// Cuts a client off.
    private mutating func cut(_ index: Int) async {
        guard isConnected[index] else { return }
        isConnected[index] = false
        clients[index].leave()
        await engine.disconnect(clients[index].number)
    }

    /// Connects a client, without waiting until it has been told everything.
    private mutating func come(_ index: Int) async throws {
        guard !isConnected[index] else { return }
        isConnected[index] = true
        versions[index] += 1
        let client = clients[index]
        try await engine.reachHead()
        // A client discards changes that came before the query was whole, and does not get them
        // again.
        if client.state.withLock({ $0.since["changes"] }) == nil {
            beginnings[index] = try await store.head()
        }
        await engine.connect(
            client.number, at: client.connection(), of: Fixtures.container, as: client.reader)
        try await engine.declare(Self.queries, version: versions[index], by: client)
    }

    /// Loses the relay with all that it knew of its clients; some clients reconnect at once.
    mutating func crash() async throws -> String? {
        // The old engine's commands reach no client any more.
        following.cancel()
        lives += 1
        for index in clients.indices {
            isConnected[index] = false
            clients[index].leave()
        }
        (engine, following) = Self.engine(on: store, seed: lives)
        try await engine.reachHead()
        for index in clients.indices where beginnings[index] != nil && generator.chance(70) {
            try await come(index)
        }
        return try await look()
    }

    /// Reads the log, by the engine too, before it is pruned.
    mutating func prepareForPruning() async throws {
        try await learn()
        try await engine.reachHead()
        for (index, client) in clients.enumerated()
        where !client.state.withLock({ $0.isComplete }) {
            mayReset[index] = true
        }
    }

    /// Connects all clients, and checks what they show.
    mutating func end() async throws -> String? {
        for index in clients.indices { try await come(index) }
        let sentence = try await look()
        following.cancel()
        return sentence
    }

    // MARK: What must be so

    private mutating func look() async throws -> String? {
        looks += 1
        try await learn()
        let records = try await kept()
        for index in clients.indices where isConnected[index] {
            let client = clients[index]
            await client.wait { $0.isComplete }
            try await engine.fence("f", of: client.number)
            let state = client.state.withLock { $0 }
            if let problem = problem(of: state, index, records) {
                return "client \(client.number): \(problem)"
            }
            mayReset[index] = false
            client.state.withLock { $0.resets = [] }
        }
        return nil
    }

    private func problem(
        of state: ModelClient.State, _ index: Int, _ records: [String: RecordFields]
    ) -> String? {
        if !state.gone.isEmpty { return "queries are gone: \(state.gone)" }
        if let reset = state.resets.first, reset != "expired" || !mayReset[index] {
            return "it begins anew for no reason: \(state.resets)"
        }
        for id in ["all", "cheap", "first", "last"] {
            let right = Self.shown(id, of: records)
            let shown = state.shown[id] ?? [:]
            guard shown == right else {
                return "\(id) shows \(shown.keys.sorted()), not \(right.keys.sorted())"
            }
        }
        let gaps = state.gaps["changes"] ?? []
        let right = fitting.filter { position in
            let number = Int64(clamping: position.rawValue)
            return beginnings[index].map { position > $0 } ?? false
                && !gaps.contains { number > $0.lowerBound && number <= $0.upperBound }
        }
        let told = state.changes["changes"] ?? []
        if told != right.map({ Int64(clamping: $0.rawValue) }) {
            return "it was told of \(told), and these are to be told: \(right)"
        }
        return nil
    }

    /// Computes the expected result of a query: judges all records, sorts them, and cuts at the
    /// limit.
    private static func shown(
        _ id: String, of records: [String: RecordFields]
    ) -> [String: JSONValue] {
        func price(_ fields: RecordFields) -> Int64? {
            if case .integer(let price)? = fields["price"] { price } else { nil }
        }
        let bounds: [String: Int64] = ["cheap": bound, "first": bound + 3, "last": bound + 3]
        var fitting = records.filter { _, fields in
            guard let most = bounds[id] else { return true }
            return price(fields).map { $0 < most } ?? false
        }.sorted { left, right in
            let prices = (price(left.value) ?? .min, price(right.value) ?? .min)
            return prices.0 == prices.1 ? left.key < right.key : prices.0 < prices.1
        }
        if id == "first" { fitting = Array(fitting.prefix(3)) }
        if id == "last" { fitting = Array(fitting.suffix(2)) }
        return Dictionary(
            fitting.map { ($0.key, .object(FieldValue.notation(fields: $0.value))) }
        ) { first, _ in first }
    }

    /// Reads the records that the store keeps.
    private func kept() async throws -> [String: RecordFields] {
        var cursor: RecordID?
        var all: [String: RecordFields] = [:]
        repeat {
            let slice = try await store.scanRecords(
                RecordScan(of: Self.type, in: Self.place, after: cursor), into: [ShadowRecord]()
            ) { records, scanned in
                records.append(scanned.record)
                return true
            }
            for record in slice.value { all[record.recordID.recordName.rawValue] = record.fields }
            cursor = slice.cursor
        } while cursor != nil
        return all
    }

    /// Reads from the log which changes fit, before it is pruned.
    private mutating func learn() async throws {
        while true {
            let entries = try await store.followedEntries(after: read, limit: 100)
            guard let last = entries.last else { return }
            read = last.position
            for entry in entries where entry.container == Fixtures.container {
                guard case .change(let logged, let isStale) = entry.body, !isStale else { continue }
                let change = try logged.change()
                guard change.recordType == Self.type, !change.isSnapshot,
                    case .integer(let price)? = change.judgedImage?.fields["price"],
                    price < Self.bound
                else { continue }
                fitting.append(entry.position)
            }
        }
    }
}
