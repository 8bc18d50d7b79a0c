/// Whole numbers of variable length: seven bits a byte, the lowest first (LEB128, unsigned).
enum LEB128 {
    /// Appends `value`.
    static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Reads the number at `index` and advances `index` past it, or returns `nil` if the number is
    /// cut off or too long.
    static func read<Bytes: Collection<UInt8>>(
        _ bytes: Bytes, at index: inout Bytes.Index
    ) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while index < bytes.endIndex, shift < 64 {
            let byte = bytes[index]
            bytes.formIndex(after: &index)
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }
}
