// What a byte is in ASCII, for whoever reads a text of one of the dialects.
extension UInt8 {
    /// Whether it is one of the digits 0 to 9.
    var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    /// Whether it is a blank, or ends a line.
    var isBlank: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
