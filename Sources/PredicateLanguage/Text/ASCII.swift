// Classes of ASCII bytes, for the lexers of the dialects.
extension UInt8 {
    /// Whether the byte is one of the digits 0 to 9.
    var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    /// Whether the byte is white space: a blank, a tab or a line break.
    var isBlank: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}
