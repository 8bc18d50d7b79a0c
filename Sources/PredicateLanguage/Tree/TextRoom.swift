import RelayModel

/// What is left of the text that a condition may have, while it is read.
///
/// A short text can ask for much: it names an argument of a megabyte by its place twenty thousand
/// times, or has one for each word of it. What the tree shares is made as often as it is named when
/// the tree is printed or fitted to a database: that would be twenty gigabytes before the length is
/// looked at.
struct TextRoom {
    /// Bytes of a predicate's text that one more comparison takes at the least, with the AND before
    /// it.
    static let termBytes = 16

    private var bytes = Limits.maximumPredicateBytes
    /// What the arguments take that were named.
    private var sizes: [Int: Int] = [:]

    /// Names an argument by its place.
    ///
    /// - Throws: ``PredicateError`` if the text is too long that it makes by being named again.
    mutating func name(
        _ index: Int, _ value: FieldValue, at span: SourceSpan
    ) throws(PredicateError) {
        guard let size = sizes[index] else {
            sizes[index] = Self.size(of: value)
            return
        }
        try take(size, at: span)
    }

    /// Takes so many bytes.
    ///
    /// - Throws: ``PredicateError`` if there are fewer.
    mutating func take(_ size: Int, at span: SourceSpan) throws(PredicateError) {
        bytes -= size
        guard bytes < 0 else { return }
        throw PredicateError(
            .check,
            "the canonical text is longer than \(Limits.maximumPredicateBytes) bytes", at: span,
            expected: "\(Limits.maximumPredicateBytes) bytes at the most")
    }

    /// What a value takes as text, rather too little than too much.
    private static func size(of value: FieldValue) -> Int {
        switch value {
        case .string(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .reference(let reference): reference.recordID.recordName.rawValue.utf8.count
        case .list(let values): values.reduce(1) { $0 + 1 + size(of: $1) }
        case .set(let values): values.reduce(1) { $0 + 1 + size(of: $1) }
        case .map(let members):
            members.reduce(1) { $0 + 2 + $1.key.utf8.count + size(of: $1.value) }
        default: 1
        }
    }
}
