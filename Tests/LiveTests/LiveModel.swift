import Logging
import RelayModel
import RelayTestKit
import Storage
import StorageSQLite
import Synchronization

@testable import Live

/// Writes records plainly.
struct PlainForm: LiveWriting {
    func record(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject {
        var object = identity(record, for: query)
        object["fields"] = .object(FieldValue.notation(fields: record.fields))
        return object
    }

    func identity(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject {
        ["recordName": .string(record.recordID.recordName.rawValue)]
    }

    func name(of origin: ChangeOrigin) -> String? { origin.deviceID?.rawValue }
}

/// A client that believes what it is sent, and forgets nothing of it.
final class ModelClient: LiveHub {
    struct State {
        var groups: Set<UInt32> = []
        /// What is shown of each query by record name, as of the last `at`.
        var shown: [String: [String: JSONValue]] = [:]
        var changes: [String: [Int64]] = [:]
        var names: [Int64: [String]] = [:]
        var fingerprints: [String: String] = [:]
        var at: String?
        var resets: [String] = []
        var gone: [String] = []
        var isComplete = false
        /// Frames that wait for their `at`.
        var open: [JSONObject] = []
        /// How many changes were told up to each `at`.
        var ends: [Int] = []
    }

    let number: UInt64
    let reader: LiveReader
    let state = Mutex(State())
    private let waiters = Mutex<[CheckedContinuation<Void, Never>]>([])

    init(_ number: UInt64, as reader: LiveReader) {
        self.number = number
        self.reader = reader
    }

    func room() async {}

    func post(_ commands: [LiveCommand]) {
        for command in commands {
            switch command {
            case .send(let number, let frames) where number == self.number:
                for frame in frames { hear(frame) }
            case .show(let number, var result) where number == self.number:
                while let frame = result.next() { hear(frame) }
            case .close(let number, let at, _) where number == self.number: hear(at)
            case .join(let number, let group) where number == self.number:
                state.withLock { _ = $0.groups.insert(group) }
            case .leave(let number, let group) where number == self.number:
                state.withLock { _ = $0.groups.remove(group) }
            case .deliver(let frames, let at, _):
                let groups = state.withLock { $0.groups }
                let told = frames.filter { groups.contains($0.group) }
                    .compactMap { $0.frame(for: reader, on: nil) }
                for frame in told { hear(frame) }
                if !told.isEmpty { hear(at) }
            default: break
            }
        }
    }

    private func hear(_ frame: LiveFrame) {
        guard case .object(let object)? = try? JSONValue(parsing: frame.bytes) else {
            preconditionFailure("a frame is an object")
        }
        state.withLock { state in
            if let token = frame.token {
                for frame in state.open { Self.apply(frame, &state) }
                state.open = []
                state.at = token
                state.ends.append(state.changes.values.reduce(0) { $0 + $1.count })
            } else {
                state.open.append(object)
            }
        }
        guard frame.token != nil else { return }
        let ready = waiters.withLock { waiters in
            defer { waiters = [] }
            return waiters
        }
        for waiter in ready { waiter.resume() }
    }

    /// Returns once `fits` holds after some `at`.
    func wait(until fits: @Sendable (State) -> Bool) async {
        while !state.withLock({ fits($0) }) {
            await withCheckedContinuation { continuation in
                waiters.withLock { $0.append(continuation) }
                // What came between is not waited for.
                guard state.withLock({ fits($0) }) else { return }
                let ready = waiters.withLock { waiters in
                    defer { waiters = [] }
                    return waiters
                }
                for waiter in ready { waiter.resume() }
            }
        }
    }

    private static func apply(_ frame: JSONObject, _ state: inout State) {
        guard case .string(let type)? = frame["type"] else { return }
        switch type {
        case "state":
            if frame["state"] == "complete" { state.isComplete = true }
            for case .object(let query) in array(frame["queries"]) {
                guard case .string(let id)? = query["id"],
                    case .integer(let group)? = query["group"]
                else { continue }
                for known in state.names.keys { state.names[known]?.removeAll { $0 == id } }
                state.names[group, default: []].append(id)
                if case .string(let print)? = query["fingerprint"] {
                    state.fingerprints[id] = print
                }
            }
        case "result":
            for name in names(frame, state) {
                if frame["part"] == 0 { state.shown[name] = [:] }
                for case .object(let record) in array(frame["records"]) {
                    state.shown[name]?[text(record["recordName"])] = record["fields"]
                }
            }
        case "items":
            for name in names(frame, state) {
                for case .object(let item) in array(frame["items"]) {
                    guard case .object(let record)? = item["record"] else { continue }
                    let key = text(record["recordName"])
                    state.shown[name, default: [:]][key] =
                        item["op"] == "removed" ? nil : record["fields"]
                }
            }
        case "change":
            guard case .integer(let position)? = frame["position"] else { return }
            for name in names(frame, state) {
                state.changes[name, default: []].append(position)
            }
        case "reset": state.resets.append(text(frame["reason"]))
        case "gone": state.gone.append(text(frame["id"]))
        default: break
        }
    }

    private static func names(_ frame: JSONObject, _ state: State) -> [String] {
        guard case .integer(let group)? = frame["group"] else { return [] }
        return state.names[group] ?? []
    }

    private static func array(_ json: JSONValue?) -> [JSONValue] {
        if case .array(let elements)? = json { elements } else { [] }
    }

    private static func text(_ json: JSONValue?) -> String {
        if case .string(let text)? = json { text } else { "" }
    }
}

/// A store, an engine on it, and what a test does with them.
struct LiveScenario {
    static let type: RecordType = Fixtures.identifier("Artwork")
    static let place = RecordPlace(container: Fixtures.container, database: .public, owner: nil)
    static let mark = "store"

    let store: RelayStore

    init() async throws {
        store = try TemporaryStore(in: .memory).open()
        try await store.save(
            ContainerSettings(key: Fixtures.container, topics: ["com.example.Art"]),
            at: Fixtures.moment)
    }

    /// Runs `body` with an engine that follows the store.
    func withEngine<Value: Sendable>(
        _ settings: LiveSettings = LiveSettings(),
        _ body: @Sendable (LiveEngine) async throws -> Value
    ) async throws -> Value {
        let engine = LiveEngine(
            log: store, shadow: store, writing: PlainForm(), store: Self.mark, seed: 1,
            settings: settings, clock: TestClock(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try? await engine.follow() }
            defer { tasks.cancelAll() }
            try await engine.reachHead()
            return try await body(engine)
        }
    }

    /// Creates, replaces or deletes records, as a client does.
    func modify(_ edits: [RecordEdit], by user: String = "alice") async throws {
        let editor = RecordEditor(userID: Fixtures.identifier(user), isServer: true)
        _ = try await store.modify(
            edits, in: Self.place, by: editor, atomicity: .independent,
            additions: [RecordTypeDefinition(Self.type, isInferred: true)], at: Fixtures.moment)
    }

    /// Appends a change, as a source posts it.
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

    /// What a query's records are, worked out from all that the store has.
    func oracle(
        _ query: LiveQuery, fits: (RecordFields) -> Bool
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
        members.load(records.filter { fits($0.record.fields) })
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
    /// What is counted of results, and what their members come to.
    var counted: (memory: Int, members: Int) {
        let members = containers.values.flatMap(\.groups.values).flatMap { $0.members?.all ?? [] }
        return (memory, members.reduce(0) { $0 + $1.record.bytes })
    }

    /// Declares queries for a model client, from where it stands.
    func declare(
        _ queries: [String: LiveQuery], version: Int64, by client: ModelClient
    ) throws {
        let known = client.state.withLock { state in
            state.isComplete = false
            return (at: state.at, prints: state.fingerprints)
        }
        let declared = queries.sorted { $0.key < $1.key }.map { id, query in
            let print = query.fingerprint(of: client.reader, schema: "")
            let isKnown = known.prints[id] == print
            return DeclaredQuery(
                id: id, query, grant: .world, fingerprint: print,
                since: isKnown ? known.at.flatMap(LiveToken.init)?.position : nil)
        }
        try declare(
            LiveSet(
                version: version, declared, removing: nil, under: schema(of: Fixtures.container)),
            by: client.number)
    }
}
