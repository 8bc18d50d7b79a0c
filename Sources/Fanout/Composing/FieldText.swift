import RelayModel

/// The text forms of field values in a push.
enum FieldText {
    /// Returns a number in decimal notation, without `.0` if it is whole.
    static func digits(of number: Double) -> String {
        Int64(exactly: number).map(String.init) ?? "\(number)"
    }

    /// Subtracts at most the number of bytes of a value's JSON text from `room`.
    ///
    /// Stops once `room` is negative.
    static func take(_ value: FieldValue, from room: inout Int) {
        switch value {
        case .string(let text): room -= text.utf8.count
        case .bytes(let bytes): room -= bytes.count
        case .list(let values): take(values, values.count, from: &room)
        case .set(let values): take(values, values.count, from: &room)
        case .map(let members):
            take(members.values, members.count, from: &room)
            for name in members.keys where room >= 0 { room -= name.utf8.count }
        case .null, .bool, .integer, .double, .timestamp, .reference, .location, .uuid, .objectID:
            room -= 1
        }
    }

    /// Counts one byte for each separator between two elements.
    private static func take(
        _ values: some Sequence<FieldValue>, _ count: Int, from room: inout Int
    ) {
        room -= max(0, count - 1)
        for value in values {
            guard room >= 0 else { return }
            take(value, from: &room)
        }
    }

    /// Returns a value as `af` contains it: CloudKit's raw value, without its type.
    ///
    /// As in CloudKit Web Services, dates are milliseconds since 1970, and booleans are 0 or 1.
    /// Returns `nil` for a field without a value.
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
