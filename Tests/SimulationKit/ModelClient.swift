package import Live
package import RelayModel
import RelayTestKit
package import Storage
package import Synchronization

/// Writes records as plain JSON, for frames.
package struct PlainForm: LiveWriting {
    package init() {}

    package func record(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject {
        var object = identity(record, for: query)
        object["fields"] = .object(FieldValue.notation(fields: record.fields))
        return object
    }

    package func identity(_ record: ShadowRecord, for query: LiveQuery) -> JSONObject {
        ["recordName": .string(record.recordID.recordName.rawValue)]
    }

    package func name(of origin: ChangeOrigin) -> String? { origin.deviceID?.rawValue }
}

/// A client that applies every frame it gets, and keeps the results.
///
/// The frames of a query count once the query is whole: with its result, or with `complete`. The
/// client discards the frames of a query that did not become whole, and resumes each query from
/// the token at which it was last whole.
package final class ModelClient: LiveHub {
    package struct State: Sendable {
        package var groups: Set<UInt32> = []
        /// The records that each query shows, by record name, as of the last `at`.
        package var shown: [String: [String: JSONValue]] = [:]
        package var changes: [String: [Int64]] = [:]
        package var names: [Int64: [String]] = [:]
        package var fingerprints: [String: String] = [:]
        /// The token at which each query was last whole.
        package var since: [String: String] = [:]
        package var resets: [String] = []
        /// The gaps that each query of changes reported, from after the first position up to the
        /// second.
        package var gaps: [String: [ClosedRange<Int64>]] = [:]
        package var gone: [String] = []
        package var isComplete = false
        /// Each progress that was reported while a set was sent.
        package var progress: [Double] = []
        /// The number of changes that had come at each `at`.
        package var ends: [Int] = []
        /// Frames that wait for their `at`.
        var open: [JSONObject] = []
        /// The fingerprints of queries that are not whole yet.
        var prints: [String: String] = [:]
        /// The frames of each query that is not whole yet.
        var pending: [String: [JSONObject]] = [:]
        /// The queries that are whole, and stay so at each `at`.
        var live: Set<String> = []
        /// The queries whose result has come completely, and which the next `at` makes whole.
        var begun: Set<String> = []
        /// The queries of whose result more is to come.
        var partial: Set<String> = []
        /// The version of the set that was declared last.
        package var version: Int64 = 0
        /// The number of the current connection, counted from 0.
        var connection = 0
    }

    package let number: UInt64
    package let reader: LiveReader
    package let state = Mutex(State())
    private let waiters = Mutex<[CheckedContinuation<Void, Never>]>([])

    package init(_ number: UInt64, as reader: LiveReader) {
        self.number = number
        self.reader = reader
    }

    /// Returns a hub for a connection of the client.
    ///
    /// The client ignores what arrives over it after the client has left, as if the relay were
    /// killed.
    package func connection() -> any LiveHub {
        Connection(of: self, state.withLock { $0.connection })
    }

    private final class Connection: LiveHub {
        private let client: ModelClient
        private let number: Int

        init(of client: ModelClient, _ number: Int) {
            self.client = client
            self.number = number
        }

        func room() async {}

        func post(_ commands: [LiveCommand]) { client.hear(commands, over: number) }
    }

    package func room() async {}

    package func post(_ commands: [LiveCommand]) {
        hear(commands, over: state.withLock { $0.connection })
    }

    private func hear(_ commands: [LiveCommand], over connection: Int) {
        let isClosed = state.withLock { state in
            guard state.connection == connection else { return false }
            return commands.reduce(false) { isClosed, command in
                hear(command, &state) || isClosed
            }
        }
        guard isClosed else { return }
        let ready = waiters.withLock { waiters in
            defer { waiters = [] }
            return waiters
        }
        for waiter in ready { waiter.resume() }
    }

    /// Applies one command; returns whether an `at` closed anything.
    private func hear(_ command: LiveCommand, _ state: inout State) -> Bool {
        var frames: [LiveFrame] = []
        switch command {
        case .send(let number, let sent) where number == self.number: frames = sent
        case .show(let number, var result) where number == self.number:
            while let frame = result.next() { frames.append(frame) }
        case .close(let number, let at, _) where number == self.number: frames = [at]
        case .join(let number, let group) where number == self.number: state.groups.insert(group)
        case .leave(let number, let group) where number == self.number: state.groups.remove(group)
        case .deliver(let all, let at, _):
            let told = all.filter { frame in
                state.groups.contains(frame.group) && !frame.except.contains(number)
            }
            frames = told.compactMap { $0.frame(for: reader, on: nil) }
            if !frames.isEmpty { frames.append(at) }
        default: break
        }
        for frame in frames { Self.hear(frame, &state) }
        return frames.contains { $0.token != nil }
    }

    private static func hear(_ frame: LiveFrame, _ state: inout State) {
        guard case .object(let object)? = try? JSONValue(parsing: frame.bytes) else {
            preconditionFailure("a frame is an object")
        }
        guard let token = frame.token else { return state.open.append(object) }
        for frame in state.open { take(frame, &state) }
        state.open = []
        for name in Set(state.names.values.joined()).sorted() { close(name, token, &state) }
        state.ends.append(state.changes.values.reduce(0) { $0 + $1.count })
    }

    /// Applies the pending frames of a query, if it is whole.
    private static func close(_ name: String, _ token: String, _ state: inout State) {
        let isWhole = state.live.contains(name) || state.begun.contains(name) || state.isComplete
        guard isWhole, !state.partial.contains(name) else { return }
        state.live.insert(name)
        state.begun.remove(name)
        let pending = state.pending.removeValue(forKey: name) ?? []
        for frame in pending { apply(frame, to: name, &state) }
        state.since[name] = token
        state.fingerprints[name] = state.prints[name]
    }

    /// Discards the state of the current connection; a query that is not whole is sent again.
    package func leave() {
        state.withLock { state in
            state.connection += 1
            state.isComplete = false
            (state.groups, state.names, state.open) = ([], [:], [])
            (state.pending, state.prints) = ([:], [:])
            (state.live, state.begun, state.partial) = ([], [], [])
        }
    }

    /// Suspends until `fits` holds after an `at`.
    package func wait(until fits: @Sendable (State) -> Bool) async {
        while !state.withLock({ fits($0) }) {
            await withCheckedContinuation { continuation in
                waiters.withLock { $0.append(continuation) }
                // The state may fit already: a command may have come before the continuation was
                // stored.
                guard state.withLock({ fits($0) }) else { return }
                let ready = waiters.withLock { waiters in
                    defer { waiters = [] }
                    return waiters
                }
                for waiter in ready { waiter.resume() }
            }
        }
    }

    /// Takes one frame of a step that an `at` has closed.
    private static func take(_ frame: JSONObject, _ state: inout State) {
        switch text(frame["type"]) {
        case "state": takeState(frame, &state)
        case "result":
            let isLast = frame["isLast"] == true
            for name in names(frame, state) {
                state.pending[name, default: []].append(frame)
                if isLast {
                    state.partial.remove(name)
                    state.begun.insert(name)
                } else {
                    state.partial.insert(name)
                }
            }
        case "items", "change":
            for name in names(frame, state) { state.pending[name, default: []].append(frame) }
        case "reset":
            state.resets.append(text(frame["reason"]))
            for case .integer(let group) in array(frame["groups"]) {
                for name in state.names[group] ?? [] {
                    state.pending[name, default: []].append(frame)
                    // A query of records begins with a result; only one of changes has a `from`.
                    guard frame["from"] == nil else { continue }
                    state.live.remove(name)
                    state.begun.remove(name)
                }
            }
        case "gone":
            let id = text(frame["id"])
            state.gone.append(id)
            // The query keeps its token, and resumes from it when it is declared again.
            for group in state.names.keys { state.names[group]?.removeAll { $0 == id } }
            state.live.remove(id)
            state.begun.remove(id)
        default: break
        }
    }

    private static func takeState(_ frame: JSONObject, _ state: inout State) {
        if let progress = frame["progress"]?.double { state.progress.append(progress) }
        for case .object(let query) in array(frame["queries"]) {
            guard case .string(let id)? = query["id"], case .integer(let group)? = query["group"]
            else { continue }
            if query["isResumed"] != nil || state.names[group]?.contains(id) != true {
                state.live.remove(id)
            }
            for known in state.names.keys { state.names[known]?.removeAll { $0 == id } }
            state.names[group, default: []].append(id)
            if case .string(let print)? = query["fingerprint"] { state.prints[id] = print }
        }
        guard frame["version"] == .integer(state.version) else { return }
        state.isComplete = frame["state"] == "complete"
    }

    private static func apply(_ frame: JSONObject, to name: String, _ state: inout State) {
        switch text(frame["type"]) {
        case "result":
            if frame["part"] == 0 { state.shown[name] = [:] }
            for case .object(let record) in array(frame["records"]) {
                state.shown[name]?[text(record["recordName"])] = record["fields"]
            }
        case "items":
            for case .object(let item) in array(frame["items"]) {
                guard case .object(let record)? = item["record"] else { continue }
                let key = text(record["recordName"])
                state.shown[name, default: [:]][key] =
                    item["op"] == "removed" ? nil : record["fields"]
            }
        case "change":
            guard case .integer(let position)? = frame["position"] else { return }
            state.changes[name, default: []].append(position)
        default:
            guard case .integer(let from)? = frame["from"], case .integer(let to)? = frame["to"]
            else { return }
            state.gaps[name, default: []].append(from...to)
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

extension LiveEngine {
    /// Declares queries for a model client, from the tokens that it has.
    package func declare(
        _ queries: [String: LiveQuery], version: Int64, by client: ModelClient,
        grant: ReadGrant = .world
    ) throws {
        let known = client.state.withLock { state in
            state.isComplete = false
            state.version = version
            return (since: state.since, prints: state.fingerprints)
        }
        let declared = queries.sorted { $0.key < $1.key }.map { id, query in
            let print = query.fingerprint(of: client.reader, schema: "")
            let isKnown = known.prints[id] == print
            return DeclaredQuery(
                id: id, query, grant: grant, fingerprint: print,
                since: isKnown ? known.since[id].flatMap(LiveToken.init)?.position : nil)
        }
        try declare(
            LiveSet(
                version: version, declared, removing: nil, under: schema(of: Fixtures.container)),
            by: client.number)
    }
}
