import RelayModel

/// The parameters of a request target, decoded as browsers encode them (a plus sign is a space).
///
/// Clients send parameters that are not documented (`ckjsVersion`, `clientId` …), so unknown ones
/// are kept without an error.
package struct QueryParameters: Sendable, Hashable {
    private var pairs: [Pair]

    private struct Pair: Sendable, Hashable {
        let name: String
        let value: String
    }

    /// Parses the parameters of a request target.
    ///
    /// It works on bytes, because an unencoded target may have a combining mark after a sign, which
    /// forms one `Character` with it.
    package init(target: String) {
        let bytes = target.utf8
        guard let mark = bytes.firstIndex(of: UInt8(ascii: "?")) else {
            pairs = []
            return
        }
        pairs = bytes[bytes.index(after: mark)...].split(separator: UInt8(ascii: "&")).map { part in
            let halves = part.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false
            ).map { Substring($0) }
            return Pair(
                name: Self.decode(halves[0]), value: halves.count == 2 ? Self.decode(halves[1]) : ""
            )
        }
    }

    /// The value of the first parameter called `name`, or `nil` if there is none.
    package subscript(name: String) -> String? {
        pairs.first { $0.name == name }?.value
    }

    /// Replaces a parameter's value, as if the URL had contained it.
    mutating func replace(_ name: String, by value: String) {
        pairs.removeAll { $0.name == name }
        pairs.append(Pair(name: name, value: value))
    }

    /// Decodes percent-encoding; a plus sign is a space, and an invalid escape stays as it is.
    static func decode(_ text: some StringProtocol) -> String {
        decode(text, plus: UInt8(ascii: " "))
    }

    /// Decodes percent-encoding in a path, where a plus sign stays one.
    static func decodePath(_ text: some StringProtocol) -> String {
        decode(text, plus: UInt8(ascii: "+"))
    }

    /// Decodes a text, which becomes U+FFFD if it has endless combining marks.
    ///
    /// Names are compared, and that takes time quadratic in the length of a run of marks. No
    /// language has so many in a row.
    private static func decode(_ text: some StringProtocol, plus: UInt8) -> String {
        let isPlain = !text.utf8.contains { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "+") }
        let decoded = isPlain ? String(text) : unescaped(Array(text.utf8), plus: plus)
        return decoded.hasEndlessMarks ? "\u{FFFD}" : decoded
    }

    private static func unescaped(_ bytes: [UInt8], plus: UInt8) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "%"), index + 2 < bytes.count,
                let high = hexDigit(bytes[index + 1]), let low = hexDigit(bytes[index + 2])
            {
                output.append(high << 4 | low)
                index += 3
                continue
            }
            output.append(byte == UInt8(ascii: "+") ? plus : byte)
            index += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }
}
