import RelayModel
import Storage

extension RecordEditStep {
    /// Returns the refusal of a quota that does not allow the result of an operation, or `nil`.
    ///
    /// A deletion is always allowed, and so is a record that does not grow.
    func refusal(
        of record: ShadowRecord, replacing current: ShadowRecord?, in commit: OpenCommit
    ) throws -> QuotaRefusal? {
        guard !record.isDeleted else { return nil }
        let ledger = commit.ledger(of: shadowRows.container)
        let holder = record.holder(in: shadowRows.place)
        // Far from the quotas, no exact size is needed.
        if try together.hasRoom(for: holder, by: ledger) { return nil }
        let bytes = record.storedBytes
        let whole = Growth(
            number: current?.isDeleted ?? true ? 1 : 0,
            bytes: bytes - (current?.storedBytes ?? 0))
        let wasOwn = current.map { $0.holder(in: shadowRows.place) == holder } ?? false
        return try ledger.refusal(
            of: .records, growingBy: whole, holder: holder,
            by: wasOwn ? whole : Growth(number: 1, bytes: bytes))
    }
}

extension ShadowRecord {
    /// An upper bound of the size of any record: the fields of a request of maximum size in stored
    /// form, and the client's own notation of them.
    static let mostBytes = 4 * Limits.maximumRequestBytes

    /// The size of the row as `quotaUse` counts it.
    var storedBytes: Int {
        guard !isDeleted else { return Self.bytesOfRow }
        let fields = JSONValue.object(FieldValue.notation(fields: fields)).utf8.count
        let wire = wire.members.isEmpty ? 0 : JSONValue.object(wire).utf8.count
        return Self.bytesOfRow + fields + wire
    }

    /// Returns the holder of the record as `quotaUse` counts it; empty if only the container is
    /// counted.
    func holder(in place: RecordPlace) -> String {
        guard source == .cloudKit else { return "" }
        return (place.owner ?? created.userID)?.rawValue ?? ""
    }
}
