extension RecordChange {
    /// What a system field of the record holds in one of the images, by what the relay knows.
    ///
    /// It never comes from the image's own fields, which a client may have written. `moment` is
    /// when the change happened: by the source's clock, or else when it was appended.
    ///
    /// - Returns: `null` where it is known that there is nothing to name; `nil` where nobody knows.
    public func systemValue(
        _ field: SystemField, in side: ImageSide, at moment: Timestamp?
    ) -> FieldValue? {
        switch field {
        case .recordID: .reference(RecordReference(recordID))
        case .recordName: .string(recordID.recordName.rawValue)
        case .creationDate: creation(at: moment).map { .timestamp($0.at) }
        case .modificationDate: modification(side, at: moment).map { .timestamp($0.at) }
        case .creator: creation(at: moment).map { Self.reference(to: $0.userID) }
        case .modifier: modification(side, at: moment).map { Self.reference(to: $0.userID) }
        case .creatorName: creation(at: moment).map { Self.name(of: $0.userID) }
        case .modifierName: modification(side, at: moment).map { Self.name(of: $0.userID) }
        }
    }

    private func creation(at moment: Timestamp?) -> RecordTrace? {
        if let created { return created }
        return operation == .create ? moment.map { RecordTrace(at: $0, userID: editor) } : nil
    }

    private func modification(_ side: ImageSide, at moment: Timestamp?) -> RecordTrace? {
        switch side {
        case .before: formerlyModified
        case .after: moment.map { RecordTrace(at: $0, userID: editor) }
        }
    }

    private static func reference(to user: UserID?) -> FieldValue {
        user.flatMap { RecordName(rawValue: $0.rawValue) }
            .map { .reference(RecordReference(RecordID(recordName: $0))) } ?? .null
    }

    private static func name(of user: UserID?) -> FieldValue {
        user.map { .string($0.rawValue) } ?? .null
    }

    /// The fields of an image as predicates see them: CloudKit's system fields under each of their
    /// names are what the relay knows, and absent where nobody knows.
    public func judgedFields(_ side: ImageSide, at moment: Timestamp?) -> RecordFields {
        let image = side == .before ? before : after
        var fields = image?.fields ?? [:]
        for field in SystemField.allCases {
            let value = systemValue(field, in: side, at: moment)
            for name in field.names { fields[name] = value }
        }
        return fields
    }
}
