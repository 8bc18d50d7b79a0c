import RelayModel

/// The images of a row, with the configured column types applied and their completeness decided.
struct RowImages {
    var before: RecordImage?
    var after: RecordImage?

    init(
        _ reported: ReportedChange, mapping: SourceMapping, zone: ValuePlace?, item: SourceItem
    ) throws(JSONContractError) {
        before = try mapping.image(reported.before, reported, zone: zone, item)
        after = try mapping.image(reported.after, reported, zone: zone, item)
        guard let image = reported.before, var before else { return }
        let keys = mapping.namingKey(of: reported.table) ?? reported.keyColumns
        let keyColumns = Set(keys ?? item.source.preset.defaultKeys.flatMap { $0 })
        switch (mapping.beforeImage, image.completeness) {
        case (.auto, .full), (.full, _): before.completeness = .full
        case (.auto, .partial), (.partial, _): before.completeness = .partial
        case (.keys, _): before.keepOnly(keyColumns)
        case (.auto, .unsure): before.decideCompleteness(after: after, keyColumns: keyColumns)
        }
        self.before = before
    }
}

extension RecordImage {
    /// Removes all columns except the key columns.
    mutating func keepOnly(_ columns: Set<String>) {
        fields = fields.filter { columns.contains($0.key) }
        completeness = .partial
    }

    /// Decides whether the image is the whole row.
    ///
    /// It is if it has values beyond the key and, for an update, the same columns as the after
    /// image. Without full replica identity, PostgreSQL's log has the key alone, and connectors
    /// write null for the other columns.
    mutating func decideCompleteness(
        after: RecordImage?, keyColumns: Set<String>
    ) {
        let saysMore = fields.contains { !keyColumns.contains($0.key) && !$0.value.isNull }
        let isAllNullAfter =
            after?.fields.allSatisfy { keyColumns.contains($0.key) || $0.value.isNull } ?? false
        let hasAllColumns = after.map { Set($0.fields.keys) == Set(fields.keys) } ?? true
        if hasAllColumns, saysMore || isAllNullAfter {
            completeness = .full
        } else {
            fields = fields.filter { keyColumns.contains($0.key) || !$0.value.isNull }
            completeness = .partial
        }
    }
}

extension SourceMapping {
    /// Returns the record image of a reported image, with the configured types of its columns.
    func image(
        _ image: ReportedImage?, _ reported: ReportedChange, zone: ValuePlace?, _ item: SourceItem
    ) throws(JSONContractError) -> RecordImage? {
        guard let image else { return nil }
        guard image.fields.count <= Limits.maximumFieldsPerRecord else {
            throw JSONContractError(
                path: image.path,
                reason: "\(image.fields.count) fields; "
                    + "\(Limits.maximumFieldsPerRecord) are allowed")
        }
        let completeness: ImageCompleteness = image.completeness == .full ? .full : .partial
        guard !columns.isEmpty else {
            try image.fields.checkDepth(path: image.path)
            return RecordImage(image.fields, completeness: completeness)
        }
        let zoneID = zoneOfReferences(image, reported, zone, item)
        var fields = image.fields
        for (name, value) in image.fields {
            let type =
                columns["\(reported.table.qualifiedName).\(name)"]
                ?? columns["\(reported.table.name).\(name)"] ?? columns[name]
            guard let type else { continue }
            let spelled = digits(of: value, as: type, in: name, reported, item) ?? value
            guard let converted = type.convert(spelled, zoneID: zoneID) else {
                throw JSONContractError(
                    path: image.path.isEmpty ? name : "\(image.path).\(name)",
                    reason: "\(value.kind) that cannot be read as \(type.rawValue)")
            }
            fields[name] = converted
        }
        try fields.checkDepth(path: image.path)
        return RecordImage(fields, completeness: completeness)
    }

    /// Returns a number beyond 64 bits as a text of its known digits, if the column becomes a text
    /// or a name.
    ///
    /// The result is `nil` for other values. It is also `nil` if two such numbers could become the
    /// same name.
    private func digits(
        of value: FieldValue, as type: ColumnType, in column: String, _ reported: ReportedChange,
        _ item: SourceItem
    ) -> FieldValue? {
        guard type == .text || type == .reference, case .double(let number) = value,
            value.nameText == nil, number.isFinite
        else { return nil }
        if let name = item.nameText(of: value) { return .string(name) }
        let isName = type == .reference || namesSomething(column, reported, item)
        return isName ? nil : .string(String(number))
    }

    /// Returns whether a column names the record, its zone or users.
    private func namesSomething(
        _ column: String, _ reported: ReportedChange, _ item: SourceItem
    ) -> Bool {
        let keys = namingKey(of: reported.table) ?? reported.keyColumns
        let keyColumns = keys ?? item.source.preset.defaultKeys.flatMap { $0 }
        if keyColumns.contains(column) { return true }
        let places = places(of: reported.table)
        let place = ValuePlace.column(column)
        return places.zone == place || places.owner == place || places.readers == place
            || places.originUser.contains(place)
    }

    /// Returns the zone of the record, in which its references stay, as in CloudKit.
    private func zoneOfReferences(
        _ image: ReportedImage, _ reported: ReportedChange, _ zone: ValuePlace?,
        _ item: SourceItem
    ) -> ZoneID {
        if let stated = reported.stated.zoneID { return stated }
        let name = zone.flatMap { item.value(at: $0, fields: image.fields) }
            .flatMap(item.nameText)
        return name.flatMap { ZoneID(zoneName: $0) } ?? .default
    }
}
