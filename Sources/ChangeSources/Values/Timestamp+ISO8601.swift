import RelayModel

extension Timestamp {
    /// Reads a date and time as databases write them: RFC 3339, with `T` or a space, with up to
    /// nine digits of a second, and with `Z`, `+01`, `+0100`, `+01:00` or nothing (UTC) at the
    /// end; or a date alone, meaning its midnight in UTC.
    ///
    /// Years 0001 to 9999. Returns `nil` for anything else.
    package init?(iso8601 text: String) {
        var scanner = DigitScanner(text)
        guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2),
            scanner.skip("-"), let day = scanner.number(2), year >= 1, (1...12).contains(month),
            (1...Self.days(inMonth: month, of: year)).contains(day)
        else { return nil }
        var seconds = Self.days(year: year, month: month, day: day) * 86_400
        var nanoseconds: Int64 = 0
        if !scanner.isAtEnd {
            guard scanner.skip("T") || scanner.skip("t") || scanner.skip(" "),
                let hour = scanner.number(2), hour < 24, scanner.skip(":"),
                let minute = scanner.number(2), minute < 60
            else { return nil }
            seconds += hour * 3600 + minute * 60
            if scanner.skip(":") {
                // 60 is a leap second; it counts as the first moment of the next minute.
                guard let second = scanner.number(2), second <= 60 else { return nil }
                seconds += second
                if scanner.skip(".") {
                    guard let fraction = scanner.nanoseconds() else { return nil }
                    nanoseconds = fraction
                }
            }
            guard let offset = scanner.zoneOffset() else { return nil }
            seconds -= offset
        }
        guard scanner.isAtEnd else { return nil }
        self.init(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar.
    ///
    /// The year begins in March, so that the leap day is its last.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let monthOfYear = (month + 9) % 12
        let dayOfYear = (153 * monthOfYear + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2:
            year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400))
                ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

/// Reads fixed runs of digits.
private struct DigitScanner {
    private let bytes: [UInt8]
    private var index = 0

    init(_ text: String) {
        bytes = Array(text.utf8.prefix(64))
    }

    var isAtEnd: Bool { index == bytes.count }

    mutating func skip(_ letter: Unicode.Scalar) -> Bool {
        guard index < bytes.count, UInt32(bytes[index]) == letter.value else { return false }
        index += 1
        return true
    }

    mutating func number(_ digits: Int) -> Int64? {
        guard index + digits <= bytes.count else { return nil }
        var value: Int64 = 0
        for byte in bytes[index..<index + digits] {
            guard 0x30...0x39 ~= byte else { return nil }
            value = value * 10 + Int64(byte - 0x30)
        }
        index += digits
        return value
    }

    /// One to nine digits after the point.
    mutating func nanoseconds() -> Int64? {
        var value: Int64 = 0
        var count = 0
        while count < 9, let digit = number(1) {
            value = value * 10 + digit
            count += 1
        }
        guard count > 0 else { return nil }
        for _ in count..<9 { value *= 10 }
        return value
    }

    /// Seconds east of Greenwich; nothing at all means none.
    mutating func zoneOffset() -> Int64? {
        if isAtEnd || skip("Z") || skip("z") { return 0 }
        let sign: Int64
        if skip("+") {
            sign = 1
        } else if skip("-") {
            sign = -1
        } else {
            return nil
        }
        guard let hours = number(2), hours < 24 else { return nil }
        var minutes: Int64 = 0
        if !isAtEnd {
            _ = skip(":")
            guard let value = number(2), value < 60 else { return nil }
            minutes = value
        }
        return sign * (hours * 3600 + minutes * 60)
    }
}
