import RelayModel

/// How field values read in a push.
enum FieldText {
    /// A number as people write it: without `.0` where it is whole.
    static func digits(of number: Double) -> String {
        Int64(exactly: number).map(String.init) ?? "\(number)"
    }

    /// A moment in ISO 8601 with seconds, UTC.
    static func iso8601(_ moment: Timestamp) -> String {
        let days = Int(moment.seconds.floorDivided(by: 86_400))
        let second = Int(moment.seconds - Int64(days) * 86_400)
        let (year, month, day) = civil(days)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let time = "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
        return "\(year)-\(two(month))-\(two(day))T\(time)Z"
    }

    /// The date in the Gregorian calendar of a count of days since 1970-01-01.
    ///
    /// Years are counted from March, so that the leap day comes last and 400 years are 146,097
    /// days.
    private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month,
            dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        )
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
            .array(values.map { rawValue($0) ?? .null }.sorted { $0.text < $1.text })
        case .map(let members):
            .object(
                JSONObject(
                    members.sorted { $0.key < $1.key }
                        .map { (name: $0.key, value: rawValue($0.value) ?? .null) }))
        }
    }
}

extension Int64 {
    /// Division that rounds down, also below zero.
    func floorDivided(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
