/// Access to bytes, and the classes of bytes.
extension RQLLexer {
    func byte(at position: Int) -> UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    func string(_ start: Int, _ end: Int) -> String {
        String(decoding: bytes[start..<end], as: UTF8.self)
    }

    func starts(with text: String) -> Bool {
        bytes[index...].starts(with: text.utf8)
    }

    /// Returns the end of the name that begins at `start`.
    ///
    /// A blank in a name is written `\ `, `\n`, `\r` or `\t`.
    func endOfName(from start: Int) -> Int {
        var cursor = start
        while let byte = byte(at: cursor) {
            if Self.continuesName(byte) {
                cursor += 1
            } else if byte == UInt8(ascii: "\\"), let next = self.byte(at: cursor + 1),
                " nrt".utf8.contains(next)
            {
                cursor += 2
            } else {
                break
            }
        }
        return cursor
    }

    /// Returns the name whose notation is `raw`.
    static func decodingBlanks(_ raw: String) -> String {
        guard raw.utf8.contains(UInt8(ascii: "\\")) else { return raw }
        var decoded: [UInt8] = []
        var isEscaped = false
        for byte in raw.utf8 {
            if isEscaped {
                switch byte {
                case UInt8(ascii: "n"): decoded.append(0x0A)
                case UInt8(ascii: "r"): decoded.append(0x0D)
                case UInt8(ascii: "t"): decoded.append(0x09)
                default: decoded.append(byte)
                }
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else {
                decoded.append(byte)
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    static func isHexDigit(_ byte: UInt8) -> Bool {
        byte.isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte | 0x20)
    }

    /// Returns whether a byte can begin a name: an ASCII letter, `_`, `$` or any byte of a
    /// non-ASCII character.
    static func beginsName(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$") || byte >= 0x80
    }

    static func continuesName(_ byte: UInt8) -> Bool {
        beginsName(byte) || byte.isDigit || byte == UInt8(ascii: "-")
    }
}
