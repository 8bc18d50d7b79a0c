package import Live
package import RelayModel
import RelayTestKit
package import Storage
package import Synchronization

/// Writes records plainly.
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

/// A client that believes what it is sent, and forgets nothing of it.
///
/// What it is told of a query counts once it is whole: with its result, or with `complete`. Of what
/// has not become whole nothing is kept, and it goes on with each query from where that was whole.
package final class ModelClient: LiveHub {
    package struct State: Sendable {
        package var groups: Set<UInt32> = []
        /// What is shown of each query by record name, as of the last `at`.
        package var shown: [String: [String: JSONValue]] = [:]
        package var changes: [String: [Int64]] = [:]
        package var names: [Int64: [String]] = [:]
        package var fingerprints: [String: String] = [:]
        /// The token as of which each query was whole last.
        package var since: [String: String] = [:]
        package var resets: [String] = []
        /// What of changes was said to be missing: from beyond the first to the second.
        package var gaps: [String: [ClosedRange<Int64>]] = [:]
        package var gone: [String] = []
        package var isComplete = false
        /// How much of its sets it was told that it has been told.
        package var progress: [Double] = []
        /// How many changes were told up to each `at`.
        package var ends: [Int] = []
        /// Frames that wait for their `at`.
        var open: [JSONObject] = []
        /// The marks of queries that are not whole.
        var prints: [String: String] = [:]
        /// What each query was told that is not whole.
        var pending: [String: [JSONObject]] = [:]
        /// The queries that are whole, so that each `at` keeps them so.
        var live: Set<String> = []
        /// Those that the next `at` makes whole, because their result has come.
        var begun: Set<String> = []
        /// Those of whose result there is more to come.
        var partial: Set<String> = []
        /// The version that was declared last.
        package var version: Int64 = 0
        /// Which of its connections this is.
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

    /// A connection of the client's: what comes over it once the client has left is not heard, as
    /// of a relay that was killed.
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

    /// Hears what one command says; says whether something was closed.
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

    /// Applies what a query was told, if it is whole.
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

    /// Forgets what belongs to a connection: what is not whole comes again.
    package func leave() {
        state.withLock { state in
            state.connection += 1
            state.isComplete = false
            (state.groups, state.names, state.open) = ([], [:], [])
            (state.pending, state.prints) = ([:], [:])
            (state.live, state.begun, state.partial) = ([], [], [])
        }
    }

    /// Returns once `fits` holds after some `at`.
    package func wait(until fits: @Sendable (State) -> Bool) async {
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

    /// Takes a frame up to which everything has come.
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
                    // What is not of changes begins with a result.
                    guard frame["from"] == nil else { continue }
                    state.live.remove(name)
                    state.begun.remove(name)
                }
            }
        case "gone":
            let id = text(frame["id"])
            state.gone.append(id)
            // What it was told last is where it goes on when it is declared again.
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
    /// Declares queries for a model client, from where it stands.
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
