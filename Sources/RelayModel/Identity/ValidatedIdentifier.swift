/// A text that names something, checked once at the border and trusted ever after.
public protocol ValidatedIdentifier: RawRepresentable<String>, Sendable, Hashable, Comparable,
    CustomStringConvertible
{
    /// What texts are allowed, to be read after "not": `a container identifier of 1 to 255 …`.
    static var rule: String { get }
}

extension ValidatedIdentifier {
    /// The text itself.
    public var description: String { rawValue }

    /// Whether two identifiers are the same bytes, as the database compares them.
    ///
    /// Two spellings of one letter are equal as texts; as names of users they are two users.
    ///
    /// Other modules get its body: the index compares names for every change and every edit.
    @inlinable
    public static func == (left: Self, right: Self) -> Bool {
        left.rawValue.utf8.count == right.rawValue.utf8.count
            && left.rawValue.utf8.elementsEqual(right.rawValue.utf8)
    }

    /// Orders by the bytes of the UTF-8 texts.
    public static func < (left: Self, right: Self) -> Bool {
        left.rawValue.utf8.lexicographicallyPrecedes(right.rawValue.utf8)
    }

    /// Hashes the bytes, by which identifiers are compared.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(name: rawValue)
    }
}

extension Hasher {
    /// Hashes the bytes of a name.
    ///
    /// As a text a name has one hash in all of its spellings, of which fifty letters have more than
    /// anybody can count: who chooses names would have thousands of them in one place of a
    /// dictionary, where each is compared with all others.
    package mutating func combine(name: String) {
        // ASCII has one spelling, and is hashed many bytes at a time.
        guard !name.utf8.isASCII else { return combine(name) }
        for byte in name.utf8 { combine(byte) }
        // No byte of UTF-8: it tells where the name ends.
        combine(0xFF as UInt8)
    }
}

extension String {
    /// Whether this text is 1 to `maximum` UTF-8 bytes long and free of control characters.
    ///
    /// Control characters in a name would reach logs, headers and terminals.
    func isPlainName(upTo maximum: Int) -> Bool {
        (1...maximum).contains(utf8.count)
            && utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Whether this text can be the value of a header: 1 to `maximum` bytes of printable ASCII or
    /// UTF-8 beyond it, without a blank at its ends (RFC 9113, 8.2.1).
    public func isHeaderText(upTo maximum: Int) -> Bool {
        isPlainName(upTo: maximum) && utf8.first != 0x20 && utf8.last != 0x20
    }
}
