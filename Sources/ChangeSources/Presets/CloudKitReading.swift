import RelayModel

/// Records as CloudKit Web Services return them from `records/modify`, `lookup` and `changes`, and
/// by zone from `changes/zone` (CloudKit Web Services Reference, "Record Dictionary").
enum CloudKitReading {
    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        guard let records = try reader.array("records") else { return try record(reader, item) }
        guard records.count <= Limits.maximumChangesPerRequest else {
            throw reader.failure(
                "records",
                "\(records.count) records; \(Limits.maximumChangesPerRequest) are allowed")
        }
        let zone = try zoneID(of: reader)
        var changes: [ReportedChange] = []
        for (index, element) in records.enumerated() {
            let inner = try JSONReader(element, path: reader.path(of: "records[\(index)]"))
            guard case .changes(let found) = try record(inner, item) else { continue }
            changes += found.map { change in
                var change = change
                change.stated.zoneID = change.stated.zoneID ?? zone
                return change
            }
        }
        return changes.isEmpty ? .ignored("no record changed") : .changes(changes)
    }

    private static func record(
        _ reader: JSONReader, _ item: SourceItem
    ) throws(JSONContractError) -> Reading {
        if let code = reader.anyText("serverErrorCode") {
            return .ignored("CloudKit refused this record: \(code.prefix(64))")
        }
        let name = try reader.require("recordName", try reader.string("recordName"))
        let isDeleted = try reader.bool("deleted") ?? false
        let created = try reader.reader("created")
        let modified = try reader.reader("modified")
        let operation: ChangeOperation =
            isDeleted ? .delete : isNew(created, modified) ? .create : .update
        var change = ReportedChange(operation, of: try table(reader, item))
        change.recordName = name
        change.stated.zoneID = try zoneID(of: reader)
        if !isDeleted {
            var fields: RecordFields = [:]
            if let inner = try reader.reader("fields") { fields = try CloudKitFields.read(inner) }
            change.after = ReportedImage(
                fields: fields, completeness: .full, path: reader.path(of: "fields"))
        }
        change.occurredAt = modified?.anyMoment("timestamp")
        change.userID = modified?.anyText("userRecordName")
        change.deviceID = modified?.anyText("deviceID")
        if let tag = reader.anyText("recordChangeTag") {
            change.key = (.position, tag)
            change.sharesPosition = true
        }
        return .changes([change])
    }

    /// Returns whether the record was not modified since its creation.
    private static func isNew(_ created: JSONReader?, _ modified: JSONReader?) -> Bool {
        guard let first = created?.anyMoment("timestamp") else { return false }
        return modified?.anyMoment("timestamp") == first
    }

    /// Returns the record's type.
    ///
    /// A deleted record may lack it; then the mapping must name it.
    private static func table(
        _ reader: JSONReader, _ item: SourceItem
    ) throws(JSONContractError) -> ReportedTable {
        if let type = try reader.string("recordType") { return ReportedTable(name: type) }
        if item.source.mapping.table != nil { return try item.configuredTable() }
        throw reader.failure(
            "recordType",
            "is required; if deleted records lack it, name it with the mapping's \"table\"")
    }

    private static func zoneID(of reader: JSONReader) throws(JSONContractError) -> ZoneID? {
        guard let zone = try reader.reader("zoneID") else { return nil }
        let name = try zone.require("zoneName", try zone.string("zoneName"))
        let owner: UserID? = try zone.identifier("ownerRecordName")
        guard let zoneID = ZoneID(zoneName: name, ownerRecordName: owner) else {
            throw zone.failure("zoneName", "must be a zone name of 1 to 255 bytes")
        }
        return zoneID
    }
}
