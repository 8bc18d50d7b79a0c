import RelayModel

extension SourceMapping {
    /// Returns whether changes of `table` are dropped.
    func ignores(_ table: ReportedTable) -> Bool {
        !ignoredTables.isEmpty
            && (ignoredTables.contains(table.qualifiedName) || ignoredTables.contains(table.name))
    }

    /// Returns the configured key columns of `table`; `nil` if none are configured.
    func namingKey(of table: ReportedTable) -> [String]? {
        keys.isEmpty ? key : keys[table.qualifiedName] ?? keys[table.name] ?? key
    }

    /// Returns the places in the rows of `table` of everything that a change needs besides its
    /// fields.
    func places(of table: ReportedTable) -> RowPlaces {
        guard !tables.isEmpty, let own = tables[table.qualifiedName] ?? tables[table.name]
        else { return places }
        return own.over(places)
    }

    /// Returns the changes that a report stands for.
    ///
    /// Usually it is one. An update that gave the record another name, type, zone or owner becomes
    /// a deletion and a creation, because for everyone else that is what happened. The former
    /// record is not deleted if another row has become that record.
    func changes(
        from reported: ReportedChange, item: SourceItem
    ) throws(JSONContractError) -> [RecordChange] {
        let places = places(of: reported.table)
        let images = try RowImages(reported, mapping: self, zone: places.zone, item: item)
        let judged = images.after ?? images.before
        let identity = try identity(
            reported, places, item, row: judged?.fields ?? [:], other: images.before?.fields ?? [:],
            path: (reported.after ?? reported.before)?.path ?? item.path)
        if reported.operation == .delete, isTaken(identity, reported, places, item) { return [] }
        var change = identity.change(reported.operation, images)
        if let keys = reported.changedKeys, keys.count > Limits.maximumFieldsPerRecord {
            throw item.failure(
                "it names \(keys.count) changed fields; \(Limits.maximumFieldsPerRecord) are "
                    + "allowed")
        }
        change.changedKeys = reported.changedKeys
        change.isSnapshot = reported.isSnapshot
        try fill(&change, reported, places, item)
        guard reported.operation == .update, let before = reported.before,
            let formerImage = images.before, reported.recordName == nil
        else { return [change] }
        // A partial before image that has the key still says what the record was called.
        let isKeyAlone = reported.keyColumns != nil || reported.formerIsNamed
        guard formerImage.completeness == .full || isKeyAlone else { return [change] }
        let rest = formerImage.completeness == .full ? [:] : images.after?.fields ?? [:]
        let former = try self.identity(
            reported, places, item, row: formerImage.fields, other: rest, path: before.path)
        guard former != identity else { return [change] }
        var deletion = former.change(.delete, images)
        try fill(&deletion, reported, places, item)
        var creation = identity.change(.create, images)
        creation.movedFrom = RecordAddress(
            former.recordID, database: former.database, owner: former.owner,
            recordType: former.recordType)
        try fill(&creation, reported, places, item)
        return isTaken(former, reported, places, item) ? [creation] : [deletion, creation]
    }

    /// Returns whether another row has taken over the identity that the reported row had before.
    private func isTaken(
        _ former: RowIdentity, _ reported: ReportedChange, _ places: RowPlaces, _ item: SourceItem
    ) -> Bool {
        guard let fields = reported.formerTakenBy else { return false }
        let taker = ReportedImage(fields: fields, completeness: .partial, path: item.path)
        let row = try? image(taker, reported, zone: places.zone, item)
        let record = try? identity(
            reported, places, item, row: row?.fields ?? [:], other: [:], path: item.path)
        return record == former
    }

    /// Returns the deletion or creation of an update that moved a row between two records, if only
    /// one of them has a valid identity.
    ///
    /// An identity is invalid without a name or an owner, for example. The result is `nil` if it is
    /// the same record, or if neither identity is valid.
    func half(of reported: ReportedChange, item: SourceItem) -> RecordChange? {
        guard reported.operation == .update, reported.recordName == nil,
            let before = reported.before, let after = reported.after
        else { return nil }
        let places = places(of: reported.table)
        let images = try? RowImages(reported, mapping: self, zone: places.zone, item: item)
        let isWhole =
            images.map { $0.before?.completeness == .full } ?? (before.completeness == .full)
        // In a partial row, null may mean unknown.
        let known = isWhole ? before.fields : before.fields.filter { !$0.value.isNull }
        let row = images?.after?.fields ?? after.fields
        let formerRow = images?.before?.fields ?? known
        let columns = namingKey(of: reported.table) ?? reported.keyColumns
        guard isWhole || columns?.allSatisfy({ formerRow[$0] != nil }) == true else { return nil }
        let record = try? identity(
            reported, places, item, row: row, other: formerRow, path: after.path)
        let former = try? identity(
            reported, places, item, row: formerRow, other: isWhole ? [:] : row, path: before.path)
        guard former != record else { return nil }
        var deletion = reported
        (deletion.operation, deletion.after) = (.delete, nil)
        if let change = try? changes(from: deletion, item: item).first { return change }
        var creation = reported
        (creation.operation, creation.before) = (.create, nil)
        return try? changes(from: creation, item: item).first
    }

    private func fill(
        _ change: inout RecordChange, _ reported: ReportedChange, _ places: RowPlaces,
        _ item: SourceItem
    ) throws(JSONContractError) {
        let after = change.after?.fields ?? [:]
        let before = change.before?.fields ?? [:]
        // What the preset finds is chosen by the database's clients. They could keep their changes
        // from everybody by an ID that is refused, so such an ID is ignored.
        change.origin = ChangeOrigin(
            deviceID: try item.originName("device", at: places.originDevice, after, before)
                ?? reported.deviceID.flatMap(DeviceID.init(rawValue:)),
            userID: try item.originName("user", at: places.originUser, after, before)
                ?? reported.userID.flatMap(UserID.init(rawValue:)))
        try fillReaders(&change, reported, places.readers, item)
        change.occurredAt = reported.occurredAt
        if let occurredAt = places.occurredAt {
            change.occurredAt = try moment(at: occurredAt, item, after, before)
        }
        change.version = order == .position ? reported.version : nil
        if let version = places.version {
            guard
                case .integer(let number)? = item.value(at: version, fields: after, before)
                    .flatMap({ ColumnType.integer.convert($0.asVersion, zoneID: .default) })
            else {
                throw item.failure(
                    "the value at the mapping's \"version\" is neither an integer nor a date; if "
                        + "it is a text, declare its column as \"timestamp\" in the mapping's "
                        + "\"columns\"")
            }
            change.version = number
        }
    }

    private func moment(
        at place: ValuePlace, _ item: SourceItem, _ after: RecordFields, _ before: RecordFields
    ) throws(JSONContractError) -> Timestamp? {
        guard let value = item.value(at: place, fields: after, before) else { return nil }
        let zone = ZoneID.default
        for type in [ColumnType.timestamp, .milliseconds] {
            if case .timestamp(let moment)? = type.convert(value, zoneID: zone) { return moment }
        }
        throw item.failure("occurredAt is neither a date nor milliseconds since 1970")
    }
}

extension SourceItem {
    /// Returns the originating device or user, from the first place that has a value; an empty text
    /// is none.
    ///
    /// - Throws: `JSONContractError` for a value that is no such name. The change would be pushed
    ///   to the device that made it.
    func originName<Name: ValidatedIdentifier>(
        _ member: String, at places: [ValuePlace], _ after: RecordFields, _ before: RecordFields
    ) throws(JSONContractError) -> Name? {
        for place in places {
            guard let value = self.value(at: place, fields: after, before), value != .string("")
            else { continue }
            guard let name = nameText(of: value).flatMap(Name.init(rawValue:)) else {
                throw failure(
                    "the value at \(place.json.text), the mapping's \"origin.\(member)\", is not "
                        + Name.rule)
            }
            return name
        }
        return nil
    }
}

// MARK: - Identity

/// The identity of a record, as derived from a row.
struct RowIdentity: Hashable {
    var recordType: RecordType
    var recordID: RecordID
    var database: DatabaseScope
    var owner: UserID?

    func change(_ operation: ChangeOperation, _ images: RowImages) -> RecordChange {
        var change = RecordChange(operation, of: recordType, recordID)
        change.database = database
        change.owner = owner
        change.before = operation == .create ? nil : images.before
        change.after = operation == .delete ? nil : images.after
        return change
    }
}

extension SourceMapping {
    /// Returns the identity of `row`; `other` supplies columns that `row` lacks.
    private func identity(
        _ reported: ReportedChange, _ places: RowPlaces, _ item: SourceItem, row: RecordFields,
        other: RecordFields, path: String
    ) throws(JSONContractError) -> RowIdentity {
        let stated = reported.stated
        var zoneID = stated.zoneID ?? .default
        if stated.zoneID == nil, let zone = places.zone {
            let name = item.value(at: zone, fields: row, other).flatMap(item.nameText)
            guard let found = name.flatMap({ ZoneID(zoneName: $0) }) else {
                throw zone.failure("zone", "a zone name of 1 to 255 bytes", path)
            }
            zoneID = found
        }
        let owner =
            if let owner = stated.owner {
                owner
            } else {
                try ownerName(at: places.owner, item, row, other, path)
            }
        let scope =
            if let scope = stated.database {
                scope
            } else {
                try scope(places, item, row, other, path, of: owner)
            }
        guard scope == .public || owner != nil else {
            let inBody = item.path.isEmpty ? "owner" : "\(item.path).owner"
            throw JSONContractError(
                path: places.owner?.path(in: path) ?? inBody,
                reason: "a change in a \(scope.rawValue) database needs an owner")
        }
        let name = try recordName(reported, item, row, other, path)
        return RowIdentity(
            recordType: try recordType(reported.table, path: item.path),
            recordID: RecordID(recordName: name, zoneID: zoneID), database: scope,
            owner: scope == .public ? nil : owner)
    }

    private func ownerName(
        at owner: ValuePlace?, _ item: SourceItem, _ row: RecordFields, _ other: RecordFields,
        _ path: String
    ) throws(JSONContractError) -> UserID? {
        guard let owner else { return nil }
        let value = item.value(at: owner, fields: row, other)
        guard let text = value.flatMap(item.nameText) else { return nil }
        guard let userID = UserID(rawValue: text) else {
            throw owner.failure("owner", UserID.rule, path)
        }
        return userID
    }

    private func scope(
        _ places: RowPlaces, _ item: SourceItem, _ row: RecordFields, _ other: RecordFields,
        _ path: String, of found: UserID?
    ) throws(JSONContractError) -> DatabaseScope {
        guard let database = places.database else {
            // A configured owner that is null must not make a private row public.
            return found != nil || places.owner != nil ? .private : .public
        }
        let word = item.value(at: database, fields: row, other)?.nameText
        guard let scope = word.flatMap(DatabaseScope.init(rawValue:)) else {
            throw database.failure("database", "\"public\", \"private\" or \"shared\"", path)
        }
        return scope
    }

    func recordType(
        _ table: ReportedTable, path: String
    ) throws(JSONContractError) -> RecordType {
        if !recordTypes.isEmpty,
            let type = recordTypes[table.qualifiedName] ?? recordTypes[table.name]
        {
            return type
        }
        guard let type = RecordType(rawValue: recordTypeName(of: table)) else {
            throw JSONContractError(
                path: path,
                reason: "the record type made from the table's name is not \(RecordType.rule)")
        }
        return type
    }

    private func recordTypeName(of table: ReportedTable) -> String {
        if recordTypeTemplate == Self.usualTemplate { return table.name }
        var text = ""
        var rest = recordTypeTemplate[...]
        while let brace = rest.firstIndex(of: "{") {
            text += rest[..<brace]
            rest = rest[brace...]
            if rest.hasPrefix("{table}") {
                text += table.name
                rest = rest.dropFirst("{table}".count)
            } else if rest.hasPrefix("{schema}") {
                text += table.schema ?? ""
                rest = rest.dropFirst("{schema}".count)
            } else if rest.hasPrefix("{database}") {
                text += table.database ?? ""
                rest = rest.dropFirst("{database}".count)
            } else {
                text += "{"
                rest = rest.dropFirst()
            }
        }
        return text + rest
    }

    private func recordName(
        _ reported: ReportedChange, _ item: SourceItem, _ row: RecordFields,
        _ other: RecordFields, _ path: String
    ) throws(JSONContractError) -> RecordName {
        let configured = namingKey(of: reported.table)
        if configured == nil, let text = reported.recordName {
            guard let name = RecordName(rawValue: text) else {
                throw item.failure("the record's name is not \(RecordName.rule)")
            }
            return name
        }
        let candidates =
            (configured ?? reported.keyColumns).map { [$0] } ?? item.source.preset.defaultKeys
        let columns =
            candidates.first { $0.allSatisfy { row[$0] != nil || other[$0] != nil } }
            ?? candidates[0]
        var parts: [String] = []
        for column in columns {
            let value = row[column] ?? other[column]
            guard let text = value.flatMap(item.nameText) else {
                throw JSONContractError(
                    path: path.isEmpty ? column : "\(path).\(column)",
                    reason: Self.keyRefusal(of: value))
            }
            parts.append(columns.count == 1 ? text : text.escapedForJoining)
        }
        guard let name = RecordName(rawValue: parts.joined(separator: ",")) else {
            throw JSONContractError(
                path: path, reason: "the record name made from the key is not \(RecordName.rule)")
        }
        return name
    }

    /// Returns why a value cannot be part of a record's name.
    private static func keyRefusal(of value: FieldValue?) -> String {
        if case .double? = value {
            return "the key is a number that needs more than 64 bits, so its digits are not exact; "
                + "have the sender write it as a text"
        }
        return "the key column is missing, null or not a plain value; name the key columns in the "
            + "mapping's \"key\""
    }
}

extension ValuePlace {
    /// Returns this place for error messages; `path` is that of the row.
    func path(in path: String) -> String {
        switch self {
        case .column(let name): path.isEmpty ? name : "\(path).\(name)"
        case .header(let name): "header \(name)"
        case .pointer(let pointer): pointer.description
        case .constant: "the mapping's constant"
        }
    }

    /// Returns an error about the value at this place.
    func failure(_ what: String, _ rule: String, _ path: String) -> JSONContractError {
        JSONContractError(path: self.path(in: path), reason: "the \(what) must be \(rule)")
    }
}

extension FieldValue {
    /// A date as a version: its milliseconds since 1970.
    var asVersion: FieldValue {
        if case .timestamp(let moment) = self { .integer(moment.milliseconds) } else { self }
    }
}
