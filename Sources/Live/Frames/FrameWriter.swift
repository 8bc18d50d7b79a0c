import RelayModel
import Storage

/// Writes the frames that the relay sends to live clients (docs/live.md).
struct FrameWriter: Sendable {
    let writing: any LiveWriting
    /// The memory for frames of results that several clients are sent.
    let room = PartsRoom()

    /// The size at which a part of a result is complete, in bytes of its records as kept in memory.
    private static let partBytes = 64 * 1024

    // MARK: Results

    /// Writes one part of a result: the records from `index` on, up to about 64 KiB.
    ///
    /// - Parameters:
    ///   - shown: All records of the result.
    ///   - index: The index of the first record of this part.
    ///   - reader: Leaves out the records that this reader may not read; `nil` leaves out none.
    ///   - query: Says which fields are shown, and in which form.
    ///   - number: The number of this part, from 0.
    ///   - head: The members that identify the result: its group, or the ID of a `get`.
    /// - Returns: The frame, and the index at which the next part begins; `nil` after the last
    ///   part.
    func part(
        of shown: [LiveRecord], from index: Int, for reader: LiveReader?, _ query: LiveQuery,
        number: Int, _ head: JSONObject
    ) -> (frame: LiveFrame, next: Int?) {
        var records = [UInt8(ascii: "[")]
        var bytes = 0
        var next = index
        while next < shown.count {
            let record = shown[next]
            if reader?.isAmong(record.readers) ?? true {
                // A record that does not fit begins the next part, so that `isLast` is exact.
                guard bytes <= Self.partBytes else { break }
                if records.count > 1 { records.append(UInt8(ascii: ",")) }
                records.append(contentsOf: writing.text(of: record.record, for: query))
                bytes += record.bytes
            }
            next += 1
        }
        records.append(UInt8(ascii: "]"))
        let isLast = next == shown.count
        var text = JSONObjectWriter()
        text.append("type", text: "result")
        text.append(head)
        text.append("part", value: .integer(Int64(number)))
        text.append("isLast", value: .bool(isLast))
        text.append("records", written: records)
        return (LiveFrame("result", text.finish(), []), isLast ? nil : next)
    }

    /// Writes the changes to a result; `nil` if there are none.
    ///
    /// - Parameters:
    ///   - items: The records that were removed, added and changed.
    ///   - shown: The query that shows them.
    ///   - traits: The traits of `shown`, passed along to spare a look into `shown`.
    ///   - group: The number of the group.
    ///   - origin: The device and user that made the change, if it was a single change.
    ///   - written: The texts of the same records that other groups have needed so far.
    /// - Returns: The frame.
    func items(
        _ items: LiveItems, of shown: LiveShown, as traits: LiveShown.Traits, _ group: UInt32,
        by origin: ChangeOrigin? = nil, _ written: inout WrittenRecords
    ) -> LiveFrame? {
        guard !items.all.isEmpty else { return nil }
        // One change may go to a thousand results, whose frames differ in the group alone.
        var head: [UInt8] = []
        let rest = written.list(of: items, for: traits, by: origin) { written in
            list(of: items.all, shown, traits, by: origin, &written)
        }
        head.reserveCapacity(Self.opening.count + 10)
        head.append(contentsOf: Self.opening)
        head.append(contentsOf: String(group).utf8)
        return LiveFrame("items", head, rest)
    }

    /// The rest of a frame of items, after the number of its group.
    private func list(
        of items: [LiveItem], _ shown: LiveShown, _ traits: LiveShown.Traits,
        by origin: ChangeOrigin?, _ written: inout WrittenRecords
    ) -> [UInt8] {
        let name = origin.flatMap { written.name(of: $0, by: writing) }
        var bytes = Self.list
        for (index, item) in items.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(item, shown, traits, name, &written, to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private static let opening = Array(#"{"type":"items","group":"#.utf8)
    private static let list = Array(#","items":["#.utf8)
    private static let previous = Array(#","previous":"#.utf8)

    /// Appends an item, of which all but the neighbour is shared with other groups.
    private func append(
        _ item: LiveItem, _ shown: LiveShown, _ traits: LiveShown.Traits, _ by: String?,
        _ written: inout WrittenRecords, to bytes: inout [UInt8]
    ) {
        let parts = written.item(item, for: traits, by: by) { written in
            var head = JSONObjectWriter()
            append(head: item, shown, &written, to: &head)
            var tail = JSONObjectWriter(following: head)
            append(tail: item, shown, by, &written, to: &tail)
            return (head.begun, tail.finish())
        }
        bytes.append(contentsOf: parts.head)
        if traits.isOrdered, item.operation != .removed {
            bytes.append(contentsOf: Self.previous)
            if let neighbour = item.neighbour {
                JSONValue.write(Self.key(of: neighbour.id), to: &bytes)
            } else {
                JSONValue.null.write(to: &bytes)
            }
        }
        bytes.append(contentsOf: parts.tail)
    }

    private func append(
        head item: LiveItem, _ shown: LiveShown, _ written: inout WrittenRecords,
        to text: inout JSONObjectWriter
    ) {
        text.append("op", text: item.operation.rawValue)
        if let reason = item.reason { text.append("why", text: reason.rawValue) }
        switch item.operation {
        case .added, .changed:
            text.append("record", written: written.record(item.record, for: shown, by: writing))
        case .removed:
            let identity = writing.identity(item.record.record, for: shown.query)
            text.append("record", value: .object(identity))
        }
    }

    private func append(
        tail item: LiveItem, _ shown: LiveShown, _ by: String?, _ written: inout WrittenRecords,
        to text: inout JSONObjectWriter
    ) {
        if item.moved { text.append("moved", value: true) }
        let tellsBefore =
            item.operation == .changed || item.reason != .unreadable && item.reason != .forgotten
        if shown.traits.showsBefore, tellsBefore, let before = item.before {
            text.append("before", written: written.record(before, for: shown, by: writing))
        }
        if item.operation == .changed, let before = item.before {
            text.append(
                "changedKeys", written: written.changedKeys(before, item.record, for: shown.traits))
        }
        if let by { text.append("by", text: by) }
    }

    /// The name of a record as the member `previous` has it: preceded by the zone's owner and name
    /// unless the record is in the default zone.
    static func key(of id: RecordID) -> String {
        guard id.zoneID != .default else { return id.recordName.rawValue }
        let owner = id.zoneID.ownerRecordName?.rawValue ?? ""
        return "\(owner)/\(id.zoneID.zoneName)/\(id.recordName.rawValue)"
    }

    // MARK: Changes

    /// Writes a frame of a `changes` query, which shows each change once.
    func change(
        _ change: RecordChange, at position: LogPosition, appendedAt: Timestamp,
        of query: LiveQuery, _ group: UInt32, _ transition: LiveTransition?, showsBefore: Bool
    ) -> LiveFrame? {
        let side = change.judgedSide
        let record =
            change.shown(side, position, at: appendedAt)
            ?? change.named(position, at: appendedAt)
        var object: JSONObject = [
            "type": "change", "group": .integer(Int64(group)),
            "position": .integer(Int64(clamping: position.rawValue)),
            "operation": .string(change.operation.rawValue),
        ]
        object["transition"] = transition.map { .string($0.rawValue) }
        object["record"] =
            change.operation == .delete
            ? JSONValue.object(writing.identity(record.record, for: query))
            : written(record, side, of: change, for: query)
        if query.showsBefore, showsBefore,
            let before = change.shown(.before, position, at: appendedAt)
        {
            object["before"] = written(before, .before, of: change, for: query)
        }
        // The names of the changed fields reveal something about the record before.
        if showsBefore, let keys = change.changedKeys {
            object["changedKeys"] = .array(
                keys.filter { query.travels($0) }.map { .string($0) })
        }
        object["by"] = writing.name(of: change.origin).map { .string($0) }
        object["occurredAt"] = change.occurredAt.map { .integer($0.milliseconds) }
        return LiveFrame(object)
    }

    /// A record as a change shows it, without what the change does not know: the creation date of
    /// a record that is not kept, and the version of the record before.
    private func written(
        _ record: LiveRecord, _ side: ImageSide, of change: RecordChange, for query: LiveQuery
    ) -> JSONValue {
        var object = writing.record(record.record, for: query)
        if change.created == nil, change.operation != .create { object["created"] = nil }
        if side == .before {
            object["recordChangeTag"] = nil
            if change.formerlyModified == nil { object["modified"] = nil }
        }
        return .object(object)
    }

    // MARK: Everything else

    /// Writes the state of a set of queries; `queries` tells which group shows which query.
    static func state(
        _ state: SetState, version: Int64, isEmpty: Bool, _ queries: [JSONValue]? = nil,
        progress: Double? = nil
    ) -> LiveFrame {
        var object: JSONObject = [
            "type": "state", "version": .integer(version),
            "state": .string(state.rawValue), "isEmpty": .bool(isEmpty),
        ]
        object["progress"] = progress.map { .number($0) }
        object["queries"] = queries.map { .array($0) }
        return LiveFrame(object)
    }

    /// Writes the frame that completes a position: after it, all queries are as of `token`.
    static func at(_ token: String) -> LiveFrame {
        LiveFrame(["type": "at", "at": .string(token)])
    }

    /// Writes that the client must discard what a group showed, because it begins anew.
    static func reset(
        _ group: UInt32, _ reason: LiveReset, from: LogPosition?, to: LogPosition
    ) -> LiveFrame {
        var object: JSONObject = [
            "type": "reset", "groups": [.integer(Int64(group))],
            "reason": .string(reason.rawValue),
        ]
        if let from {
            object["from"] = .integer(Int64(clamping: from.rawValue))
            object["to"] = .integer(Int64(clamping: to.rawValue))
        }
        return LiveFrame(object)
    }
}

/// The reason why a client cannot resume from its token and a query begins anew.
package enum LiveReset: String, Sendable, Hashable {
    /// The token belongs to another store, or to this store before a restore.
    case foreign
    /// The log has been pruned beyond the token's position.
    case expired
    /// Too many changes have happened since the token's position.
    case tooFar
    /// The query or the schema has changed.
    case changed
    /// A record with readers entered a limited result, whose records now depend on the reader.
    case readers
}

/// The state of a client's set of queries.
enum SetState: String {
    /// Some first results have not been sent yet.
    case bootstrapping
    /// All first results have been sent.
    case complete
    /// The client declared another version before this one was complete.
    case superseded
}
