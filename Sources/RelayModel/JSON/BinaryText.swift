/// Base64 (RFC 4648 §4), without Foundation.
public enum Base64 {
    private static let standard = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlSafe = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let padding = UInt8(ascii: "=")

    /// The value of each digit of both alphabets, by its byte; `noValue` for any other byte.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: noValue, count: 256)
        for alphabet in [standard, urlSafe] {
            for (value, digit) in alphabet.enumerated() { values[Int(digit)] = UInt8(value) }
        }
        return values
    }()
    private static let noValue: UInt8 = 255

    /// Returns the text for `bytes`, with padding.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text = digits(of: bytes, in: standard)
        while !text.count.isMultiple(of: 4) { text.append(padding) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of `text`, or `nil` if it is not base64.
    ///
    /// Padding may be missing, and the URL-safe alphabet is accepted too.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var digits = Array(text.utf8)
        while digits.last == padding { digits.removeLast() }
        return bytes(of: digits)?.bytes
    }

    /// Returns the bytes of `text` in the base64url form of JSON Web Tokens (RFC 7515 §2), or `nil`
    /// for any other form.
    ///
    /// The form has no padding, only the URL-safe alphabet, and no unused bits that are set. So the
    /// same bytes have exactly one spelling, and a token cannot be rewritten in another one.
    public static func decodeToken(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        for digit in digits where digit == UInt8(ascii: "+") || digit == UInt8(ascii: "/") {
            return nil
        }
        guard let (bytes, rest) = bytes(of: digits), rest == 0 else { return nil }
        return bytes
    }

    /// Returns the base64url text for `bytes`, without padding.
    public static func encodeToken(_ bytes: [UInt8]) -> String {
        String(decoding: digits(of: bytes, in: urlSafe), as: UTF8.self)
    }

    private static func digits(of bytes: [UInt8], in alphabet: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(alphabet[Int(bits >> count & 63)])
            }
        }
        if count > 0 { text.append(alphabet[Int(bits << (6 - count) & 63)]) }
        return text
    }

    /// Returns the bytes that `digits` encode and the bits after the last whole byte; `nil` if a
    /// byte is not a digit, or if a single digit is left over.
    private static func bytes(of digits: [UInt8]) -> (bytes: [UInt8], rest: UInt32)? {
        guard digits.count % 4 != 1 else { return nil }
        let values = values
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3 + 2)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for digit in digits {
            let value = values[Int(digit)]
            guard value != noValue else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        return (bytes, bits & (1 << count - 1))
    }
}

/// Hexadecimal digits, two for each byte.
public enum Hexadecimal {
    /// Returns the text for `bytes`, in lower case.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                text.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of `text`, or `nil` if it is not an even number of hexadecimal digits.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(of: digits[index]), let low = value(of: digits[index + 1]) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Returns the value of one digit in either case; `nil` if `digit` is not hexadecimal.
    static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Percent-encoding (RFC 3986 §2.1).
package enum PercentEncoding {
    /// Returns the text with everything but letters, digits and `-._~` encoded; if `isPath` is
    /// true, slashes stay as well.
    package static func encode(_ text: String, isPath: Bool = false) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            case 0x2F where isPath: encoded += "/"
            default: encoded += "%" + Hexadecimal.encode([byte]).uppercased()
            }
        }
        return encoded
    }
}
