import RelayModel

/// How field values read in a push.
enum FieldText {
    /// A number as people write it: without `.0` where it is whole.
    static func digits(of number: Double) -> String {
        Int64(exactly: number).map(String.init) ?? "\(number)"
    }

    /// A value as `af` holds it: CloudKit's raw value, without a type beside it.
    ///
    /// Dates are milliseconds since 1970 and booleans 0 or 1, as in CloudKit Web Services. `nil`
    /// stands for a field without a value.
    static func rawValue(_ value: FieldValue) -> JSONValue? {
        switch value {
        case .null: nil
        case .bool(let flag): flag ? 1 : 0
        case .integer(let number): .integer(number)
        case .double(let number): number.isFinite ? .number(number) : nil
        case .string(let text): .string(text)
        case .timestamp(let moment): .integer(moment.milliseconds)
        case .bytes(let bytes): .string(Base64.encode(bytes))
        case .reference(let reference):
            ["recordName": .string(reference.recordID.recordName.rawValue)]
        case .location(let place):
            ["latitude": .number(place.latitude), "longitude": .number(place.longitude)]
        case .uuid(let uuid): .string(uuid.description)
        case .objectID(let bytes): .string(Hexadecimal.encode(bytes))
        case .list(let values): .array(values.map { rawValue($0) ?? .null })
        case .set(let values):
            .array(values.map { rawValue($0) ?? .null }.orderedByText)
        case .map(let members):
            .object(
                JSONObject(
                    members.sorted { $0.key < $1.key }
                        .map { (name: $0.key, value: rawValue($0.value) ?? .null) }))
        }
    }
}
