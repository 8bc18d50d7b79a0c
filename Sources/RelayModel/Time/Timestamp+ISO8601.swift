/// The optional parts of a date and time that a caller can require.
package struct ISO8601Parts: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The seconds, which imply the time of day.
    package static let seconds = ISO8601Parts(rawValue: 1)
    /// The offset from UTC, or `Z`.
    package static let offset = ISO8601Parts(rawValue: 2)
}

extension Timestamp {
    /// Reads a date and time as databases write them, or returns `nil` for anything else.
    ///
    /// The form is RFC 3339 with `T` or a space, up to nine digits of a second, and `Z`, `+01`,
    /// `+0100`, `+01:00` or nothing (UTC) at the end. A date alone means its midnight in UTC. Years
    /// are 0001 to 9999. Returns `nil` also if one of `parts` is missing.
    package init?(iso8601 text: String, with parts: ISO8601Parts = []) {
        var scanner = DigitScanner(text)
        guard let year = scanner.number(4), scanner.skip("-"), let month = scanner.number(2),
            scanner.skip("-"), let day = scanner.number(2), year >= 1
        else { return nil }
        let date = CivilDate(year: year, month: month, day: day)
        guard date.isInCalendar else { return nil }
        var seconds = date.daysSince1970 * 86_400
        var nanoseconds: Int64 = 0
        var missing = parts
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
                missing.remove(.seconds)
                if scanner.skip(".") {
                    guard let fraction = scanner.nanoseconds() else { return nil }
                    nanoseconds = fraction
                }
            }
            if !scanner.isAtEnd { missing.remove(.offset) }
            guard let offset = scanner.zoneOffset() else { return nil }
            seconds -= offset
        }
        guard scanner.isAtEnd, missing.isEmpty else { return nil }
        self.init(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    /// The moment in ISO 8601 with milliseconds, in UTC, which people and `date -d` can read.
    package var iso8601: String {
        let milliseconds = String(nanoseconds / 1_000_000)
        return iso8601(fraction: "." + Self.padded(milliseconds, 3))
    }

    /// The moment in ISO 8601 without a fraction, which is cut off and not rounded.
    package var iso8601Seconds: String { iso8601(fraction: "") }

    /// Years have four digits.
    ///
    /// Years outside 0000 to 9999 have a sign and as many digits as they need (ISO 8601's expanded
    /// form); the year before 0001 is 0000.
    private func iso8601(fraction: String) -> String {
        let (quotient, remainder) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let isBelow = remainder < 0
        let date = CivilDate(daysSince1970: isBelow ? quotient - 1 : quotient)
        let second = isBelow ? remainder + 86_400 : remainder
        func two(_ number: Int64) -> String { Self.padded(String(number), 2) }
        let sign = date.year < 0 ? "-" : date.year > 9999 ? "+" : ""
        return sign + Self.padded(String(date.year.magnitude), 4)
            + "-\(two(date.month))-\(two(date.day))"
            + "T\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))\(fraction)Z"
    }

    private static func padded(_ digits: String, _ width: Int) -> String {
        String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// Reads runs of digits of a fixed length.
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

    /// Reads one to nine digits after the decimal point, as nanoseconds.
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

    /// Reads an offset from UTC in seconds, positive to the east; an empty rest means UTC.
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
