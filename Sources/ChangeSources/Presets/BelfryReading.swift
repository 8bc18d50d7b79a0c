import RelayModel

/// The relay's own format (`docs/change-sources.md`).
enum BelfryReading {
    private static let members = [
        "operation", "recordType", "recordName", "zoneID", "database", "owner", "before",
        "beforeCompleteness", "after", "afterCompleteness", "changedKeys", "origin", "readers",
        "occurredAt", "version", "position", "snapshot",
    ]

    static func read(_ item: SourceItem) throws(JSONContractError) -> Reading {
        let reader = try item.reader()
        try reader.allowOnly(members)
        let operation: ChangeOperation = try reader.require(
            "operation", try reader.choice("operation"))
        let type: RecordType = try reader.require("recordType", try reader.identifier("recordType"))
        let name: RecordName = try reader.require("recordName", try reader.identifier("recordName"))
        var change = ReportedChange(operation, of: ReportedTable(name: type.rawValue))
        change.recordName = name.rawValue
        change.stated = try stated(reader)
        change.before = try image("before", reader)
        change.after = try image("after", reader)
        try check(change, reader)
        change.changedKeys = try reader.strings("changedKeys")
        if let origin = try reader.reader("origin") {
            try origin.allowOnly(["deviceID", "userRecordName"])
            change.deviceID = try origin.identifier("deviceID", as: DeviceID.self)?.rawValue
            change.userID = try origin.identifier("userRecordName", as: UserID.self)?.rawValue
        }
        change.readers = try reader.strings("readers")
        change.occurredAt = try reader.moment("occurredAt")
        change.version = try reader.integer("version")
        change.isSnapshot = try reader.bool("snapshot") ?? false
        if let position = try reader.string("position") {
            guard !position.isEmpty else { throw reader.failure("position", "must not be empty") }
            change.key = (.position, position)
        }
        return .changes([change])
    }

    private static func check(
        _ change: ReportedChange, _ reader: JSONReader
    ) throws(JSONContractError) {
        switch change.operation {
        case .create where change.before != nil:
            throw reader.failure("before", "must be absent: a created record did not exist before")
        case .delete where change.after != nil:
            throw reader.failure("after", "must be absent: a deleted record no longer exists")
        case .create where change.after == nil, .update where change.after == nil:
            throw reader.failure("after", "is required for a creation or an update")
        case .create, .update, .delete: break
        }
    }

    private static func stated(_ reader: JSONReader) throws(JSONContractError) -> StatedPlace {
        var stated = StatedPlace()
        stated.database = try reader.choice("database")
        stated.owner = try reader.identifier("owner")
        stated.zoneID = try zoneID(of: reader)
        return stated
    }

    /// Returns the zone in the member `zoneID`, which is a dictionary or a bare name.
    static func zoneID(of reader: JSONReader) throws(JSONContractError) -> ZoneID? {
        guard let zone = reader.value("zoneID") else { return nil }
        return try ZoneID(json: zone, path: reader.path(of: "zoneID"))
    }

    private static func image(
        _ name: String, _ reader: JSONReader
    ) throws(JSONContractError) -> ReportedImage? {
        let word = "\(name)Completeness"
        let completeness: ImageCompleteness = try reader.choice(word) ?? .full
        guard let inner = try reader.reader(name) else { return nil }
        return ReportedImage(
            fields: try CloudKitFields.read(inner),
            completeness: completeness == .full ? .full : .partial, path: inner.path)
    }
}
