import ChangeSources
import RelayModel
import Storage

/// The log's changes, and what was parked: list, replay, delete.
struct ChangeAdministration: AdministrationTable {
    let registry: any Registry
    let log: any ShardLog
    let intake: ChangeIntake

    var routes: [AdministrationRoute] {
        [
            route("GET", "/changes", respond: list),
            route("GET", "/changes/parked", respond: parked),
            route("POST", "/changes/parked/{number}/replay", respond: replay),
            route("DELETE", "/changes/parked/{number}", respond: delete),
        ]
    }

    /// Entries of the log that one list looks through, whosever they are.
    private static let lookedAt = 100_000

    /// Log entries of the container after the parameter `after`, at most `limit` and at most a page
    /// of bytes; the answer's `after` goes on.
    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await key(request)
        var page = AnswerPage(limit: try request.limit())
        var position = LogPosition(try request.number("after") ?? 0)
        var room = Self.lookedAt
        while !page.isFull, room > 0 {
            let entries = try await log.entries(
                after: position, limit: min(room, 500))
            if entries.isEmpty { break }
            for entry in entries where !page.isFull {
                position = entry.position
                room -= 1
                guard entry.container == container, let json = Self.json(entry) else { continue }
                page.take(json)
            }
        }
        var answer: JSONObject = ["changes": .array(page.entries)]
        if page.isFull || room <= 0 { answer["after"] = .string(position.description) }
        return RelayAnswer(json: .object(answer))
    }

    /// What is parked, after the number `after`, at most `limit` and at most a page of bytes; the
    /// answer's `after` goes on.
    private func parked(_ request: RelayRequest) async throws -> RelayAnswer {
        let limit = try request.limit()
        let changes = try await registry.parkedChanges(
            of: try await key(request), after: try request.number("after") ?? 0, limit: limit)
        var answer: JSONObject = ["parked": .array(changes.map(Self.json))]
        let bytes = changes.reduce(0) { $0 + $1.body.count }
        if let last = changes.last, changes.count == limit || bytes > Self.largeBytes {
            answer["after"] = .string(String(last.number))
        }
        return RelayAnswer(json: .object(answer))
    }

    /// Beyond so many bytes a list may have ended for its size; headers are bytes too.
    private static let largeBytes = Limits.maximumPageBytes / 2

    /// Sends a parked change through the mapper again; what it is now is appended, and only then it
    /// is no longer parked.
    private func replay(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await key(request)
        let parked = try await parkedChange(request, of: container)
        guard
            let stored = try await registry.source(parked.source, of: container)
        else {
            throw APIError(
                .notFound, "its change source \"\(parked.source)\" is there no longer")
        }
        let source = try stored.changeSource()
        let body = try ParkedBody(json: JSONValue(stored: parked.body))
        let batch = try source.replay(body, receivedAt: parked.receivedAt)
        for item in batch.items {
            guard case .parked(let again) = item else { continue }
            let place = again.path.isEmpty ? "" : "\(again.path): "
            throw APIError(
                .badRequest, "it still cannot be mapped: \(place)\(again.reason)",
                httpStatus: 422)
        }
        let results = try await intake.take(
            batch, from: source, of: container, at: request.receivedAt)
        if results.conflicts + results.refusals == 0 {
            _ = try await registry.deleteParkedChange(parked.number, of: container)
        }
        return results.answer(requiredAnswer: nil, uuid: request.uuid)
    }

    private func delete(_ request: RelayRequest) async throws -> RelayAnswer {
        let number = try request.pathNumber("number")
        guard
            try await registry.deleteParkedChange(number, of: try await key(request))
        else { throw unknown(number) }
        return RelayAnswer(json: ["number": .integer(Int64(clamping: number)), "deleted": true])
    }

    private func parkedChange(
        _ request: RelayRequest, of container: ContainerKey
    ) async throws -> ParkedChange {
        let number = try request.pathNumber("number")
        let page = try await registry.parkedChanges(
            of: container, after: number == 0 ? 0 : number - 1, limit: 1)
        guard let parked = page.first, parked.number == number else { throw unknown(number) }
        return parked
    }

    private func unknown(_ number: UInt64) -> APIError {
        APIError(.notFound, "there is no parked change \(number)")
    }

    // MARK: JSON

    private static func json(_ parked: ParkedChange) -> JSONValue {
        let shown =
            (try? JSONValue(stored: parked.body))
            ?? .string(String(decoding: parked.body, as: UTF8.self))
        return [
            "number": .integer(Int64(clamping: parked.number)),
            "source": .string(parked.source.rawValue), "reason": .string(parked.reason),
            "path": .string(parked.path), "receivedAt": .string(parked.receivedAt.iso8601),
            "body": shown,
        ]
    }

    /// Changes only: edits of subscriptions and devices are shown elsewhere.
    private static func json(_ entry: LogEntry) -> JSONValue? {
        guard case .change(let change, let source, let isStale) = entry.body else { return nil }
        var object: JSONObject = [
            "position": .string(entry.position.description),
            "appendedAt": .string(entry.appendedAt.iso8601),
            "source": .string(source.rawValue), "change": .object(change.storedForm),
        ]
        if isStale { object["stale"] = true }
        return .object(object)
    }
}
