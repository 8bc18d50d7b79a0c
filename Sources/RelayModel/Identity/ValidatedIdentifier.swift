/// A text that names something; it is checked once when it is created and is valid from then on.
public protocol ValidatedIdentifier: RawRepresentable<String>, Sendable, Hashable, Comparable,
    CustomStringConvertible
{
    /// The rule for valid texts, worded to follow "not": `a container identifier of 1 to 255 …`.
    static var rule: String { get }
}

extension ValidatedIdentifier {
    /// The text itself.
    public var description: String { rawValue }

    /// Returns whether two identifiers have the same bytes, as the database compares them.
    ///
    /// Two spellings of one letter are equal as Swift strings, but as user names they are two
    /// users.
    ///
    /// The method is inlinable because the index compares names for every change and every edit.
    @inlinable
    public static func == (left: Self, right: Self) -> Bool {
        left.rawValue.utf8.count == right.rawValue.utf8.count
            && left.rawValue.utf8.elementsEqual(right.rawValue.utf8)
    }

    /// Compares the UTF-8 bytes.
    public static func < (left: Self, right: Self) -> Bool {
        left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
    }

    /// Hashes the bytes, because equality compares bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name: rawValue)
    }
}

extension Hasher {
    /// Hashes the bytes of a name.
    ///
    /// A Swift string has the same hash in all its spellings, and a name with fifty accented
    /// letters has an enormous number of spellings. A user who chooses such names could fill one
    /// bucket of a dictionary with thousands of unequal keys, each compared with all others.
    package mutating func combine(name: String) {
        // ASCII has one spelling, and the standard library hashes it many bytes at a time.
        guard !name.utf8.isASCII else { return combine(name) }
        for byte in name.utf8 { combine(byte) }
        // 0xFF never occurs in UTF-8, so it marks the end of the name.
        combine(0xFF as UInt8)
    }
}

extension String {
    /// Returns whether this text is 1 to `maximum` UTF-8 bytes long and has no control characters.
    ///
    /// Control characters in a name would reach logs, headers and terminals.
    func isPlainName(upTo maximum: Int) -> Bool {
        (1...maximum).contains(utf8.count)
            && utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Returns whether this text can be a header's value: 1 to `maximum` bytes of printable ASCII
    /// or non-ASCII UTF-8, without a space at either end (RFC 9113, 8.2.1).
    public func isHeaderText(upTo maximum: Int) -> Bool {
        isPlainName(upTo: maximum) && utf8.first != 0x20 && utf8.last != 0x20
    }
}
