import ChangeSources
import RelayModel
import Storage

/// The changes of the log and the parked changes: list, replay, delete.
struct ChangeAdministration: AdministrationTable {
    let registry:
        any ContainerRegistry & SourceRegistry & ParkedChangeRegistry & ListRegistry & PastRegistry
    let log: any ShardLog
    let intake: ChangeIntake
    let decoding: WebhookDecoding
    /// The queue in which replays and deletions of a container's parked changes wait for each
    /// other.
    ///
    /// Two simultaneous replays would both find the parked change, and would append it twice if its
    /// source has no dedupe key.
    let line: ReaderLine

    var routes: [AdministrationRoute] {
        [
            AdministrationRoute(.listChanges, respond: list),
            AdministrationRoute(.showChange, respond: show),
            AdministrationRoute(.listParked, respond: parked),
            AdministrationRoute(.replayParked, bodyLimit: .webhook, respond: replay),
            AdministrationRoute(.dropParked, respond: delete),
        ]
    }

    /// The maximum number of log entries, of all containers, that one list reads.
    private static let lookedAt = 100_000

    /// Lists changes of the container, the newest first, before the parameter `before`.
    ///
    /// With `after`, it lists the changes after that position in the order of the log.
    private func list(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        let before = try request.numberBefore().map { LogPosition($0) }
        var filter = ChangeListFilter()
        filter.recordType = try request.parameter("recordType")
        filter.recordName = try request.parameter("record")
        filter.source = try request.parameter("source")
        filter.user = try request.parameter("user")
        filter.isStale = try request.word("state", of: ChangeState.self).map { $0 == .stale }
        guard request.query["after"] == nil else {
            guard filter == ChangeListFilter() else {
                throw APIError(
                    .badRequest, "after: cannot be given together with a filter")
            }
            return try await listAscending(request, of: container)
        }
        let page = try await registry.listedChanges(
            of: container, filter, before: before, PageBounds(rows: try request.limit()))
        return AdministrationCall.listChanges.answer(
            page.elements.compactMap(Self.row),
            next: page.next.map { ("before", .string($0.description)) })
    }

    /// Shows a change with everything that is known of it, except what it fired (see `explain`).
    private func show(_ request: RelayRequest) async throws -> RelayAnswer {
        let position = LogPosition(try request.pathNumber("position"))
        let container = try await registry.key(in: request)
        guard let past = try await registry.pastChange(at: position, of: container) else {
            throw APIError(
                .notFound, "there is no change of \(container) at position \(position)")
        }
        var shown = Self.row(past) ?? ["position": .string(position.description)]
        shown["setAside"] = past.setAside.map { .string($0) }
        shown["settled"] = .bool(try await registry.pastSpan().settled >= position)
        return RelayAnswer(json: .object(shown))
    }

    private static func row(_ past: PastChange) -> JSONObject? {
        guard let change = past.change else { return nil }
        return AdministrationRows.change.json(
            (past.position, past.appendedAt, past.source, change, past.isStale))
    }

    /// Lists the container's changes after the parameter `after`, in the order of the log.
    ///
    /// An answer has at most `limit` changes and at most a page of bytes; its `after` continues the
    /// list.
    private func listAscending(
        _ request: RelayRequest, of container: ContainerKey
    ) async throws -> RelayAnswer {
        var page = AnswerPage(limit: try request.limit())
        var rows: [JSONObject] = []
        var position = LogPosition(try request.number("after") ?? 0)
        var room = Self.lookedAt
        while !page.isFull, room > 0 {
            let entries = try await log.entries(
                after: position, limit: min(room, 500))
            if entries.isEmpty { break }
            for entry in entries where !page.isFull {
                position = entry.position
                room -= 1
                guard entry.container == container, let json = Self.row(entry) else { continue }
                page.take(.object(json))
                rows.append(json)
            }
        }
        return AdministrationCall.listChanges.answer(
            rows,
            next: page.isFull || room <= 0 ? ("after", .string(position.description)) : nil)
    }

    /// Lists parked changes, the newest first, before the number `before`.
    ///
    /// With `after`, it lists them by ascending number after that one. An answer has at most
    /// `limit` changes and at most a page of bytes.
    private func parked(_ request: RelayRequest) async throws -> RelayAnswer {
        let before = try request.numberBefore()
        guard request.query["after"] != nil else {
            let page = try await registry.listedParked(
                of: try await registry.key(in: request), source: try request.parameter("source"),
                before: before, PageBounds(rows: try request.limit()))
            return AdministrationCall.listParked.answer(
                page.elements.map(AdministrationRows.parked.json),
                next: page.next.map { ("before", .string(String($0))) })
        }
        let limit = try request.limit()
        let changes = try await registry.parkedChanges(
            of: try await registry.key(in: request), after: try request.number("after") ?? 0,
            limit: limit)
        let bytes = changes.reduce(0) { $0 + $1.body.count }
        let hasMore = changes.count == limit || bytes > Self.largeBytes
        return AdministrationCall.listParked.answer(
            changes.map(AdministrationRows.parked.json),
            next: hasMore ? changes.last.map { ("after", .string(String($0.number))) } : nil)
    }

    /// The number of bytes beyond which a list may have been cut for its size; headers count too.
    private static let largeBytes = Limits.maximumPageBytes / 2

    /// Maps a parked change again and appends the result.
    ///
    /// The parked change is deleted only after the result was appended.
    ///
    /// The request body may correct the change: `raw` replaces the raw change, and `body` the whole
    /// parked body in the form that lists show. The parked change stays as it was until the
    /// corrected one is appended.
    private func replay(_ request: RelayRequest) async throws -> RelayAnswer {
        let container = try await registry.key(in: request)
        return try await line.turn(of: container) {
            try await replayAlone(request, of: container)
        }
    }

    private func replayAlone(
        _ request: RelayRequest, of container: ContainerKey
    ) async throws -> RelayAnswer {
        let mended = try request.optionalJSONBody()
        try mended.allowOnly(["raw", "body"])
        let parked = try await parkedChange(request, of: container)
        guard
            let stored = try await registry.source(parked.source, of: container)
        else {
            throw APIError(
                .notFound, "its change source \"\(parked.source)\" no longer exists")
        }
        let source = try stored.changeSource()
        var body = try ParkedBody(
            json: try mended.value("body") ?? JSONValue(stored: parked.body))
        if let raw = mended.value("raw") { body.raw = raw }
        let whole = body
        let (batch, prepared) = try await decoding.decode(
            source.decodedBytes(ofOtherForm: max(parked.body.count, request.body.count)),
            of: container
        ) { try source.replay(whole, receivedAt: parked.receivedAt) }
        for item in batch.items {
            guard case .parked(let again) = item else { continue }
            let place = again.path.isEmpty ? "" : "\(again.path): "
            throw APIError(
                .badRequest, "it still cannot be mapped: \(place)\(again.reason)",
                httpStatus: 422)
        }
        let results = try await intake.take(
            batch, prepared: prepared, from: source, of: container, at: request.receivedAt)
        if results.failure == nil {
            _ = try await registry.deleteParkedChange(parked.number, of: container)
        }
        return results.answer(requiredAnswer: nil, uuid: request.uuid)
    }

    private func delete(_ request: RelayRequest) async throws -> RelayAnswer {
        let number = try request.pathNumber("number")
        let container = try await registry.key(in: request)
        let isDropped = try await line.turn(of: container) {
            try await registry.deleteParkedChange(number, of: container)
        }
        guard isDropped else { throw unknown(number) }
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

    /// Returns the row of a change; `nil` for edits of subscriptions and devices, which are shown
    /// elsewhere.
    private static func row(_ entry: LogEntry) -> JSONObject? {
        guard case .change(let change, let source, let isStale) = entry.body else { return nil }
        return AdministrationRows.change.json(
            (entry.position, entry.appendedAt, source, change, isStale))
    }
}
