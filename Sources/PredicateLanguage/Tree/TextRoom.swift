import RelayModel

/// The remaining length of the canonical text of a condition that is being parsed.
///
/// A short text can expand to a huge one. It can refer to an argument of a megabyte twenty thousand
/// times by its position, or to one comparison for each of the argument's words. The tree shares
/// such values, but printing it or fitting it to a database copies them at each place. That would
/// take twenty gigabytes before the length is checked.
struct TextRoom {
    /// The minimum number of bytes that one more comparison adds to the text, with the AND before
    /// it.
    static let termBytes = 16

    private var bytes = Limits.maximumPredicateBytes
    /// The text sizes of the arguments that have been referred to.
    private var sizes: [Int: Int] = [:]

    /// Counts a reference to an argument by its position.
    ///
    /// Only repeated references take room.
    ///
    /// - Throws: ``PredicateError`` if repeated references make the text too long.
    mutating func name(
        _ index: Int, _ value: FieldValue, at span: SourceSpan
    ) throws(PredicateError) {
        guard let size = sizes[index] else {
            sizes[index] = Self.size(of: value)
            return
        }
        try take(size, at: span)
    }

    /// Takes `size` bytes of the room.
    ///
    /// - Throws: ``PredicateError`` if fewer are left.
    mutating func take(_ size: Int, at span: SourceSpan) throws(PredicateError) {
        bytes -= size
        guard bytes < 0 else { return }
        throw PredicateError(
            .check,
            "the canonical text is longer than \(Limits.maximumPredicateBytes) bytes", at: span,
            expected: "at most \(Limits.maximumPredicateBytes) bytes")
    }

    /// Returns the text size of a value.
    ///
    /// The estimate errs on the low side.
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
