import RelayModel
import Storage

extension RecordEditStep {
    /// The quota that does not allow what an operation makes of a record; what is deleted is always
    /// allowed, and so is what does not grow.
    func refusal(
        of record: ShadowRecord, replacing current: ShadowRecord?, in commit: OpenCommit
    ) throws -> QuotaRefusal? {
        guard !record.isDeleted else { return nil }
        let ledger = commit.ledger(of: shadowRows.container)
        let holder = record.holder(in: shadowRows.place)
        // Far from the quotas nobody has to measure.
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
    /// More than any record takes: fields of a request's size in their stored form, and what the
    /// client wrote of them.
    static let mostBytes = 4 * Limits.maximumRequestBytes

    /// What the row takes, as `quotaUse` counts it.
    var storedBytes: Int {
        guard !isDeleted else { return Self.bytesOfRow }
        let fields = JSONValue.object(FieldValue.notation(fields: fields)).utf8.count
        let wire = wire.members.isEmpty ? 0 : JSONValue.object(wire).utf8.count
        return Self.bytesOfRow + fields + wire
    }

    /// Whose the record is, as `quotaUse` counts it; empty if it is the container's alone.
    func holder(in place: RecordPlace) -> String {
        guard source == .cloudKit else { return "" }
        return (place.owner ?? created.userID)?.rawValue ?? ""
    }
}
