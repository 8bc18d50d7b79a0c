import Logging
import RelayModel
import RelayTestKit
import SimulationKit
import Storage
import StorageSQL
import StorageSQLite

@testable import Live

/// A store and an engine on it, with the actions that tests need.
struct LiveScenario {
    static let type: RecordType = Fixtures.identifier("Artwork")
    static let place = RecordPlace(container: Fixtures.container, database: .public, owner: nil)
    static let mark = "store"

    let store: RelayStore

    init() async throws {
        store = try TemporaryStore(in: .memory).open()
        try await make(Fixtures.container)
    }

    /// Saves a container.
    func make(_ container: ContainerKey) async throws {
        try await store.save(
            ContainerSettings(key: container, topics: ["com.example.Art"]), at: Fixtures.moment)
    }

    /// Runs `body` with an engine that follows the store.
    func withEngine<Value: Sendable>(
        _ settings: LiveSettings = LiveSettings(), log: (any ShardLog)? = nil,
        shadow: (any Shadow)? = nil,
        logger: Logger = .silent,
        _ body: @Sendable (LiveEngine) async throws -> Value
    ) async throws -> Value {
        let engine = LiveEngine(
            log: log ?? store, shadow: shadow ?? store, writing: PlainForm(), store: Self.mark,
            seed: 1, settings: settings, clock: TestClock(), logger: logger)
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try? await engine.follow() }
            defer { tasks.cancelAll() }
            try await engine.reachHead()
            return try await body(engine)
        }
    }

    /// Creates, replaces or deletes records, as a client does.
    func modify(
        _ edits: [RecordEdit], by user: String = "alice",
        in container: ContainerKey = Fixtures.container
    ) async throws {
        let editor = RecordEditor(userID: Fixtures.identifier(user), isServer: true)
        let place = RecordPlace(container: container, database: .public, owner: nil)
        _ = try await store.modify(
            edits, in: place, by: editor, atomicity: .independent,
            additions: [RecordTypeDefinition(Self.type, isInferred: true)], at: Fixtures.moment)
    }

    /// Appends a change, as a source does.
    func append(_ change: RecordChange) async throws {
        try await append([change])
    }

    /// Appends the changes of one request.
    func append(_ changes: [RecordChange]) async throws {
        _ = try await store.append(
            changes.map { ChangeToAppend($0, key: nil) }, container: Fixtures.container,
            source: Fixtures.identifier("db"), at: Fixtures.moment)
    }

    static func edit(
        _ kind: RecordEdit.Kind, _ name: String, _ fields: RecordFields = [:],
        readers: [String]? = nil
    ) -> RecordEdit {
        var edit = RecordEdit(
            kind, RecordID(recordName: Fixtures.identifier(name)), type: type)
        edit.fields = fields
        edit.readers = readers
        return edit
    }

    static func query(
        _ kind: LiveQuery.Kind, where condition: String = "TRUEPREDICATE",
        order: [LiveSortKey] = [], limit: LiveLimit? = nil, owner: String = "alice"
    ) -> LiveQuery {
        var query = LiveQuery(
            kind, Fixtures.subscription("live", of: owner, where: condition), form: LiveForm())
        query.order = order
        query.limit = limit
        return query
    }

    /// Returns the expected records of a query for `reader`, computed from the whole store.
    func oracle(
        _ query: LiveQuery, for reader: LiveReader = .server, fits: (RecordFields) -> Bool
    ) async throws -> [String: JSONValue] {
        var cursor: RecordID?
        var records: [LiveRecord] = []
        repeat {
            let slice = try await store.scanRecords(
                RecordScan(of: Self.type, in: Self.place, after: cursor), into: [ShadowRecord]()
            ) { records, scanned in
                records.append(scanned.record)
                return true
            }
            records += slice.value.map { LiveRecord($0, readers: $0.readers) }
            cursor = slice.cursor
        } while cursor != nil
        var members = ResultMembers(query)
        members.load(
            records.filter { fits($0.record.fields) && reader.isAmong($0.readers) })
        return Dictionary(
            members.shown.map { member in
                (
                    member.record.id.recordName.rawValue,
                    .object(FieldValue.notation(fields: member.record.record.fields))
                )
            }
        ) { first, _ in first }
    }
}

extension LiveEngine {
    /// The memory counted for results, and the real sum over their members.
    var counted: (memory: Int, members: Int) {
        let members = containers.values.flatMap(\.groups.values).flatMap { $0.members?.all ?? [] }
        return (memory, members.reduce(0) { $0 + $1.record.bytes })
    }
}

extension ModelClient {
    /// Returns a client of a user.
    static func of(_ number: UInt64, _ user: String = "alice") -> ModelClient {
        ModelClient(number, as: .user(Fixtures.identifier(user)))
    }

    /// Connects again, declares queries, and waits for all that they show at first.
    func come(
        _ queries: [String: LiveQuery], version: Int64 = 1, grant: ReadGrant = .world,
        to engine: LiveEngine, of container: ContainerKey = Fixtures.container
    ) async throws {
        leave()
        await engine.connect(number, at: self, of: container, as: reader)
        try await engine.declare(queries, version: version, by: self, grant: grant)
        await wait { $0.isComplete }
    }
}
