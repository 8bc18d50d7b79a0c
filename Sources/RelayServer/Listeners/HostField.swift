/// The value of the field `Host`, and the authority of a target in absolute form (RFC 9110, §7.2).
///
/// Whoever reads such a value in another way than a proxy before the relay sees another request. So
/// only what clients and proxies send is accepted: a name of letters, digits, `-`, `.`, `_` and
/// `~`, or an address, with a port or without. RFC 3986 allows more in a name, such as commas,
/// which would make a list of it.
enum HostField {
    /// What is accepted, in the words of an error.
    static let rule = "it must be one name or address, with a port or without"

    /// The maximum length in bytes: that of a DNS name with its last dot and a port, and room for
    /// an address with its zone.
    private static let longest = 320

    /// Returns whether a text that is not empty is accepted.
    static func isValid(_ text: some StringProtocol) -> Bool {
        let bytes = Array(text.utf8.prefix(longest + 1))
        guard bytes.count <= longest else { return false }
        if bytes.first == UInt8(ascii: "["), let end = bytes.firstIndex(of: UInt8(ascii: "]")) {
            return isAddress(bytes[1..<end]) && isPort(bytes[(end + 1)...])
        }
        let end = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        return isName(bytes[..<end]) && isPort(bytes[end...])
    }

    private static func isName(_ bytes: ArraySlice<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(isUnreserved)
    }

    /// Returns whether the text in brackets is an IPv6 address, perhaps with a zone (RFC 6874).
    private static func isAddress(_ bytes: ArraySlice<UInt8>) -> Bool {
        let parts = bytes.split(
            separator: UInt8(ascii: "%"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first, address.contains(UInt8(ascii: ":")),
            ClientAddress(text: String(decoding: address, as: UTF8.self)) != nil
        else { return false }
        return parts.count == 1 || isName(parts[1])
    }

    /// Returns whether a text is empty, or a colon with a port; the port may be left out.
    private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first else { return true }
        let digits = bytes.dropFirst()
        guard first == UInt8(ascii: ":"), digits.count <= 5,
            digits.allSatisfy({ 0x30...0x39 ~= $0 })
        else { return false }
        return digits.reduce(0) { $0 * 10 + Int($1 & 0xF) } <= Int(UInt16.max)
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }
}
