import RelayModel

/// The parameters of a request target, decoded as browsers encode them (a plus sign is a space).
///
/// Nobody knows all parameters that clients send (`ckjsVersion`, `clientId` …), so unknown ones are
/// simply there.
package struct QueryParameters: Sendable, Hashable {
    private var pairs: [Pair]

    private struct Pair: Sendable, Hashable {
        let name: String
        let value: String
    }

    /// Reads the parameters of a request target.
    ///
    /// By bytes: a target that was not encoded may have a mark behind a sign, and is one letter
    /// with it then.
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

    /// Puts a value in the place of what the request says, as if its URL had said it.
    mutating func replace(_ name: String, by value: String) {
        pairs.removeAll { $0.name == name }
        pairs.append(Pair(name: name, value: value))
    }

    /// Undoes percent-encoding; a plus sign is a space, and what is not an escape stays as it is.
    static func decode(_ text: some StringProtocol) -> String {
        decode(text, plus: UInt8(ascii: " "))
    }

    /// Undoes percent-encoding in a path, where a plus sign is itself.
    static func decodePath(_ text: some StringProtocol) -> String {
        decode(text, plus: UInt8(ascii: "+"))
    }

    /// What has more combining marks in a row than any language is a replacement character, as
    /// bytes are that are no UTF-8: names are compared, and that takes the square of a run.
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
