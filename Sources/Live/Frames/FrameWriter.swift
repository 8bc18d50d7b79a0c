import RelayModel
import Storage

/// Writes the relay's frames (docs/live.md).
struct FrameWriter: Sendable {
    let writing: any LiveWriting
    /// Where frames of results are kept for whoever is sent the same.
    let room = PartsRoom()

    /// Bytes of records in one part of a result, about.
    private static let partBytes = 64 * 1024

    // MARK: Results

    /// One part of a result: the records from `index` on, until they are enough.
    ///
    /// - Parameters:
    ///   - shown: the records of the result.
    ///   - index: where the part begins.
    ///   - reader: who may be shown what that one may read; `nil` leaves nothing out.
    ///   - query: the fields, and how they are written.
    ///   - number: which part it is.
    ///   - head: what names the result.
    /// - Returns: The frame, and where the next part begins; `nil` after the last one.
    func part(
        of shown: [LiveRecord], from index: Int, for reader: LiveReader?, _ query: LiveQuery,
        number: Int, _ head: JSONObject
    ) -> (frame: LiveFrame, next: Int?) {
        var records: [JSONValue] = []
        var bytes = 0
        var next = index
        while next < shown.count {
            let record = shown[next]
            if reader?.isAmong(record.readers) ?? true {
                // The one that has no room begins the next part, so that the last is known.
                guard bytes <= Self.partBytes else { break }
                records.append(.object(writing.record(record.record, for: query)))
                bytes += record.bytes
            }
            next += 1
        }
        var object: JSONObject = ["type": "result"]
        object.members += head.members
        object["part"] = .integer(Int64(number))
        object["isLast"] = .bool(next == shown.count)
        object["records"] = .array(records)
        return (LiveFrame(object), next == shown.count ? nil : next)
    }

    /// What was done to a result; `nil` if nothing was.
    ///
    /// - Parameters:
    ///   - items: removed, added, changed.
    ///   - shown: what shows them.
    ///   - traits: how: those of `shown`, which is not looked at where they say all.
    ///   - group: the number of the group.
    ///   - origin: who did it, where that was one.
    ///   - written: what was written of the same records for other groups.
    /// - Returns: The frame.
    func items(
        _ items: LiveItems, of shown: LiveShown, as traits: LiveShown.Traits, _ group: UInt32,
        by origin: ChangeOrigin? = nil, _ written: inout WrittenRecords
    ) -> LiveFrame? {
        guard !items.all.isEmpty else { return nil }
        // Of the frames that one change sends to a thousand results nothing but this differs.
        var head: [UInt8] = []
        let rest = written.list(of: items, for: traits, by: origin) { written in
            list(of: items.all, shown, traits, by: origin, &written)
        }
        head.reserveCapacity(Self.opening.count + 10)
        head.append(contentsOf: Self.opening)
        head.append(contentsOf: String(group).utf8)
        return LiveFrame("items", head, rest)
    }

    /// The rest of a frame of items, behind the number of its group.
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

    /// Appends an item: but for its neighbour, what has been written of it for another group.
    private func append(
        _ item: LiveItem, _ shown: LiveShown, _ traits: LiveShown.Traits, _ by: String?,
        _ written: inout WrittenRecords, to bytes: inout [UInt8]
    ) {
        let parts = written.item(item, for: traits, by: by) { written in
            var head = JSONObjectText()
            append(head: item, shown, &written, to: &head)
            var tail = JSONObjectText(following: head)
            append(tail: item, shown, by, &written, to: &tail)
            return (head.begun, tail.ended())
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
        to text: inout JSONObjectText
    ) {
        text.append("op", .string(item.operation.rawValue))
        if let reason = item.reason { text.append("why", .string(reason.rawValue)) }
        switch item.operation {
        case .added, .changed:
            text.append("record", written: written.record(item.record, for: shown, by: writing))
        case .removed:
            text.append("record", .object(writing.identity(item.record.record, for: shown.query)))
        }
    }

    private func append(
        tail item: LiveItem, _ shown: LiveShown, _ by: String?, _ written: inout WrittenRecords,
        to text: inout JSONObjectText
    ) {
        if item.moved { text.append("moved", true) }
        let tellsBefore =
            item.operation == .changed || item.reason != .unreadable && item.reason != .forgotten
        if shown.traits.showsBefore, tellsBefore, let before = item.before {
            text.append("before", written: written.record(before, for: shown, by: writing))
        }
        if item.operation == .changed, let before = item.before {
            text.append(
                "changedKeys", written: written.changedKeys(before, item.record, for: shown.traits))
        }
        if let by { text.append("by", .string(by)) }
    }

    /// The name of a record in the members `previous`: that of its zone comes before it where that
    /// is not the default one.
    static func key(of id: RecordID) -> String {
        guard id.zoneID != .default else { return id.recordName.rawValue }
        let owner = id.zoneID.ownerRecordName?.rawValue ?? ""
        return "\(owner)/\(id.zoneID.zoneName)/\(id.recordName.rawValue)"
    }

    // MARK: Changes

    /// One change.
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
        // Which fields it gave other values says what was there before, too.
        if showsBefore, let keys = change.changedKeys {
            object["changedKeys"] = .array(
                keys.filter { query.travels($0) }.map { .string($0) })
        }
        object["by"] = writing.name(of: change.origin).map { .string($0) }
        object["occurredAt"] = change.occurredAt.map { .integer($0.milliseconds) }
        return LiveFrame(object)
    }

    /// A record as a change shows it, without what the change does not know: when a record was made
    /// that is not kept, and which version the one before was.
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

    /// What became of a set: `queries` says which groups show which queries.
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

    /// Closes what belongs together.
    static func at(_ token: String) -> LiveFrame {
        LiveFrame(["type": "at", "at": .string(token)])
    }

    /// Says that what groups show begins anew.
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

/// Why something cannot be gone on with from where a client stood.
package enum LiveReset: String, Sendable, Hashable {
    /// The token is not of this store as it is.
    case foreign
    /// What came after it has been pruned from the log.
    case expired
    /// Too much has happened since.
    case tooFar
    /// The query, or the schema, is another one.
    case changed
    /// A member names readers, so that what is shown depends on who looks.
    case readers
}

/// How far a set is.
enum SetState: String {
    /// Its results are on their way.
    case bootstrapping
    /// Everything has been told.
    case complete
    /// Another one was accepted before everything had been told.
    case superseded
}
