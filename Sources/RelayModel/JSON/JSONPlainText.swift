extension UnsafeBufferPointer<UInt8> {
    /// Returns the index of the first byte, from `start` on, that cannot stand for itself in a JSON
    /// string (RFC 8259 §7), or the end.
    ///
    /// These are the quote, the backslash and the control characters. Eight bytes are looked at
    /// together, because texts of megabytes are read and written where others wait.
    func endOfPlainJSONText(from start: Int) -> Int {
        var index = start
        while index + 8 <= count {
            let word = unsafe UInt64(
                littleEndian: UnsafeRawBufferPointer(self).loadUnaligned(
                    fromByteOffset: index, as: UInt64.self))
            let marked = word.marksInJSONText
            if marked != 0 { return index + marked.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < count, unsafe self[index].isPlainInJSONText { index += 1 }
        return index
    }
}

extension UInt64 {
    /// A word whose lowest set bit is the highest bit of the first of these eight bytes that is not
    /// plain in a JSON string, or 0.
    ///
    /// The first byte is the lowest one.
    ///
    /// A subtraction that borrows can set bits above that one, and none below it.
    @inline(__always)
    var marksInJSONText: UInt64 {
        let (ones, highest): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        let quotes = self ^ (ones &* 0x22)
        let backslashes = self ^ (ones &* 0x5C)
        let controls = (self &- ones &* 0x20) & ~self
        return ((quotes &- ones) & ~quotes | (backslashes &- ones) & ~backslashes | controls)
            & highest
    }
}

extension UInt8 {
    /// Whether a byte stands for itself in a JSON string (RFC 8259 §7).
    @inline(__always)
    var isPlainInJSONText: Bool {
        self >= 0x20 && self != UInt8(ascii: "\"") && self != UInt8(ascii: "\\")
    }
}
