import RelayModel

/// A moment as ISO 8601 text with an offset, as Minapp writes dates.
enum InternetDate {
    /// Reads `2018-09-01T18:31:02.631000+08:00`; the fraction may be left out, `Z` is UTC.
    ///
    /// Returns `nil` for everything else, a date without time or offset included.
    static func read(_ text: some StringProtocol) -> Timestamp? {
        let bytes = Array(text.utf8)
        guard (20...40).contains(bytes.count),
            let year = number(bytes, 0, 4), bytes[4] == UInt8(ascii: "-"),
            let month = number(bytes, 5, 2), bytes[7] == UInt8(ascii: "-"),
            let day = number(bytes, 8, 2),
            bytes[10] == UInt8(ascii: "T") || bytes[10] == UInt8(ascii: " "),
            let hour = number(bytes, 11, 2), bytes[13] == UInt8(ascii: ":"),
            let minute = number(bytes, 14, 2), bytes[16] == UInt8(ascii: ":"),
            let second = number(bytes, 17, 2), year > 0, (1...12).contains(month), day > 0,
            day <= CivilDate.length(ofMonth: month, year: year), hour < 24, minute < 60,
            second < 61, let (nanoseconds, zone) = fraction(bytes),
            let offset = offset(bytes[zone...])
        else { return nil }
        let days = CivilDate.days(year: year, month: month, day: day)
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
        return Timestamp(seconds: Int64(seconds), nanoseconds: nanoseconds)
    }

    private static func number(_ bytes: [UInt8], _ start: Int, _ count: Int) -> Int? {
        var value = 0
        for byte in bytes[start..<start + count] {
            guard (0x30...0x39).contains(byte) else { return nil }
            value = value * 10 + Int(byte - 0x30)
        }
        return value
    }

    /// The nanoseconds, and where the offset begins.
    private static func fraction(_ bytes: [UInt8]) -> (nanoseconds: Int32, end: Int)? {
        guard bytes[19] == UInt8(ascii: ".") else { return (0, 19) }
        var (value, digits, end) = (Int32(0), 0, 20)
        while end < bytes.count, (0x30...0x39).contains(bytes[end]) {
            if digits < 9 {
                value = value * 10 + Int32(bytes[end] - 0x30)
                digits += 1
            }
            end += 1
        }
        guard digits > 0 else { return nil }
        for _ in digits..<9 { value *= 10 }
        return (value, end)
    }

    /// Seconds east of UTC: `Z`, `+08:00`, `+0800` or `+08`.
    private static func offset(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard let first = bytes.first else { return nil }
        if first == UInt8(ascii: "Z") || first == UInt8(ascii: "z") {
            return bytes.count == 1 ? 0 : nil
        }
        guard first == UInt8(ascii: "+") || first == UInt8(ascii: "-") else { return nil }
        let digits = bytes.dropFirst().filter { $0 != UInt8(ascii: ":") }
        guard digits.count == 2 || digits.count == 4, let hours = number(digits, 0, 2),
            let minutes = digits.count == 4 ? number(digits, 2, 2) : 0, hours < 24, minutes < 60
        else { return nil }
        let seconds = hours * 3600 + minutes * 60
        return first == UInt8(ascii: "-") ? -seconds : seconds
    }
}
