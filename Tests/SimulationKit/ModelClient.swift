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
package final class ModelClient: LiveHub {
    package struct State: Sendable {
        package var groups: Set<UInt32> = []
        /// What is shown of each query by record name, as of the last `at`.
        package var shown: [String: [String: JSONValue]] = [:]
        package var changes: [String: [Int64]] = [:]
        package var names: [Int64: [String]] = [:]
        package var fingerprints: [String: String] = [:]
        package var at: String?
        package var resets: [String] = []
        /// What of changes was said to be missing: from beyond the first to the second.
        package var gaps: [String: [ClosedRange<Int64>]] = [:]
        package var gone: [String] = []
        package var isComplete = false
        /// How much of its sets it was told that it has been told.
        package var progress: [Double] = []
        /// Frames that wait for their `at`.
        package var open: [JSONObject] = []
        /// How many changes were told up to each `at`.
        package var ends: [Int] = []
    }

    package let number: UInt64
    package let reader: LiveReader
    package let state = Mutex(State())
    private let waiters = Mutex<[CheckedContinuation<Void, Never>]>([])

    package init(_ number: UInt64, as reader: LiveReader) {
        self.number = number
        self.reader = reader
    }

    package func room() async {}

    package func post(_ commands: [LiveCommand]) {
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

    /// Forgets what belongs to a connection: what no `at` has closed comes again.
    package func leave() {
        state.withLock { state in
            (state.groups, state.names, state.open) = ([], [:], [])
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

    private static func apply(_ frame: JSONObject, _ state: inout State) {
        guard case .string(let type)? = frame["type"] else { return }
        switch type {
        case "state":
            if frame["state"] == "complete" { state.isComplete = true }
            if let progress = frame["progress"]?.double { state.progress.append(progress) }
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
        case "reset":
            state.resets.append(text(frame["reason"]))
            guard case .integer(let from)? = frame["from"], case .integer(let to)? = frame["to"],
                case .array(let groups)? = frame["groups"]
            else { return }
            for case .integer(let group) in groups {
                for name in state.names[group] ?? [] {
                    state.gaps[name, default: []].append(from...to)
                }
            }
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

extension LiveEngine {
    /// Declares queries for a model client, from where it stands.
    package func declare(
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
