import FoundationEssentials
package import RelayModel
package import Storage

extension RelayStore: FanoutRanges {
    package func containersWithRanges() async throws -> [ContainerKey] {
        try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT name AS containerName, environment FROM container
                    WHERE EXISTS (
                        SELECT 1 FROM rangeTask WHERE rangeTask.container = container.id)
                    ORDER BY id
                    """)
            return try rows.map { try StoredRow(row: $0, table: "container").containerKey() }
        }
    }

    package func nextRange(
        of container: ContainerKey, after id: UInt64
    ) async throws -> FanoutRange? {
        try await read { [unreadable] db in
            guard let known = try db.containerIfKnown(container) else { return nil }
            let rows = try Row.fetchCursor(
                db,
                sql: "SELECT * FROM rangeTask WHERE container = ? AND id > ? ORDER BY id LIMIT 1",
                arguments: [known.id, id.stored])
            guard let row = try rows.next() else { return nil }
            var range = FanoutRange(rowWithoutSerials: row, of: container)
            let serials = try unreadable.value(of: row, in: "rangeTask") {
                try StoredRow(row: $0, table: "rangeTask")
                    .require("serials", SerialList.decode($0["serials"] as Data))
            }
            if let serials { range.serials = serials } else { range.isReadable = false }
            return range
        }
    }

    package func setAside(
        _ range: FanoutRange, because reason: String, at now: Timestamp
    ) async throws {
        try await write { commit in
            let db = commit.db
            try db.execute(
                sql: """
                    INSERT INTO quarantinedRange (id, container, position, subscriptions, serials,
                        "offset", reason, quarantinedAt)
                    SELECT id, container, position, subscriptions, serials, "offset", ?, ?
                    FROM rangeTask WHERE id = ?
                    """, arguments: [reason, now.stored, range.id.stored])
            try db.execute(
                sql: "DELETE FROM rangeTask WHERE id = ?", arguments: [range.id.stored])
        }
    }

    package func members(
        _ serials: ArraySlice<UInt64>, of range: FanoutRange
    ) async throws -> [RangeMember] {
        let position = range.position
        return try await read { [unreadable] in
            var reading = RangeReading(position: position, unreadable: unreadable)
            return try reading.members(serials, in: $0)
        }
    }

    package func keep(_ inbox: [InboxEntry]) async throws {
        let limit = settings.inboxPerUser
        try await write(changes: inbox.count) { commit in
            try InboxStep.insert(inbox, perUser: limit, in: commit.db)
        }
        inboxes.tell(inbox.lazy.map(\.owner))
    }

    package var rangesAppeared: AsyncStream<Void> { ranges.stream }
}

/// A signal that ranges were written.
///
/// Several signals between two reads yield one element.
struct RangeSignal: Sendable {
    let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func signal() {
        continuation.yield()
    }
}

extension FanoutRange {
    init(rowWithoutSerials row: Row, of container: ContainerKey) {
        self.init(
            id: StoredRow(row: row, table: "rangeTask").number("id"), container: container,
            position: LogPosition(stored: row["position"]), serials: [],
            offset: UInt32(clamping: row["offset"] as Int64))
    }
}
