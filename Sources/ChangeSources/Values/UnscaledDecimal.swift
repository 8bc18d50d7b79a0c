import RelayModel

extension FieldValue {
    /// Creates a number from a decimal: a big-endian two's complement integer times 10 to the power
    /// of -`scale`.
    ///
    /// A field holds 64-bit integers and doubles. So a decimal is exact if it is a 64-bit integer
    /// with scale 0, or a 64-bit integer that no double can hold. Everything else becomes the
    /// nearest double, rounded once. The result is `nil` for more than 1024 bytes, a scale beyond
    /// ±1000, or a number beyond the range of doubles.
    init?(unscaled bytes: [UInt8], scale: Int) {
        guard !bytes.isEmpty, bytes.count <= 1024, (-1000...1000).contains(scale) else {
            return nil
        }
        var digits = Self.magnitude(of: bytes)
        let sign = (bytes.first ?? 0) >= 0x80 ? "-" : ""
        if scale == 0, let whole = Int64(sign + digits) {
            self = .integer(whole)
            return
        }
        guard let nearest = Double("\(sign)\(digits)e\(-scale)"), nearest.isFinite else {
            return nil
        }
        self = .double(nearest)
        // An integer that is too long for a double may still fit into 64 bits.
        guard nearest.magnitude >= 0x1p53, scale > -20 else { return }
        if scale > 0 {
            let fraction = digits.suffix(scale)
            guard digits.count > scale, fraction.allSatisfy({ $0 == "0" }) else { return }
            digits.removeLast(scale)
        } else {
            digits += String(repeating: "0", count: -scale)
        }
        if let whole = Int64(sign + digits) { self = .integer(whole) }
    }

    /// Returns the decimal digits of a two's complement integer, without its sign.
    private static func magnitude(of bytes: [UInt8]) -> String {
        var words = words(of: bytes)
        var groups: [String] = []
        let billion: UInt64 = 1_000_000_000
        while !words.isEmpty {
            var rest: UInt64 = 0
            for index in words.indices {
                let value = rest << 32 | UInt64(words[index])
                words[index] = UInt32(truncatingIfNeeded: value / billion)
                rest = value % billion
            }
            while words.first == 0 { words.removeFirst() }
            let group = String(rest)
            let zeros = words.isEmpty ? 0 : 9 - group.utf8.count
            groups.append(String(repeating: "0", count: zeros) + group)
        }
        return groups.isEmpty ? "0" : groups.reversed().joined()
    }

    /// Returns the magnitude in 32-bit words, highest first, without leading zeros.
    private static func words(of bytes: [UInt8]) -> [UInt32] {
        let isNegative = (bytes.first ?? 0) >= 0x80
        let padding = [UInt8](repeating: isNegative ? 0xFF : 0, count: (4 - bytes.count % 4) % 4)
        let padded = padding + bytes
        var words = stride(from: 0, to: padded.count, by: 4).map { start in
            padded[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        if isNegative {
            var carry = true
            for index in words.indices.reversed() {
                words[index] = ~words[index]
                if carry {
                    words[index] &+= 1
                    carry = words[index] == 0
                }
            }
            // The lowest number has no positive counterpart of the same length.
            if carry { words.insert(1, at: 0) }
        }
        return Array(words.drop { $0 == 0 })
    }
}
