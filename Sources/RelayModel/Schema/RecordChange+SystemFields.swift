extension RecordChange {
    /// Returns the value of a system field in one of the images, as far as the relay knows it.
    ///
    /// The value never comes from the image's own fields, which a client may have written. `moment`
    /// is the time of the change: by the source's clock, or else when it was appended.
    ///
    /// - Returns: `null` if it is known that there is no value; `nil` if the value is unknown.
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

    /// Returns the fields of an image as predicates see them.
    ///
    /// CloudKit's system fields appear under all their names with the values that the relay knows;
    /// unknown ones are absent.
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
