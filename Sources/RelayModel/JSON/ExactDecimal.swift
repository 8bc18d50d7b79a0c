extension Double {
    /// The powers of ten that a double represents exactly.
    private static let exactPowers: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ]

    /// Creates the double nearest to `mantissa` · 10^`exponent` if a single rounding gives it;
    /// otherwise returns `nil`.
    ///
    /// The product or quotient of two exact doubles is rounded only once, so it equals the result
    /// of a correct decimal reader (W. D. Clinger, 1990). That covers numbers of up to 15 digits.
    package init?(mantissa: UInt64, exponent: Int) {
        guard mantissa <= 1 << 53, (-22...22).contains(exponent) else { return nil }
        let power = Self.exactPowers[Int(exponent.magnitude)]
        self = exponent < 0 ? Double(mantissa) / power : Double(mantissa) * power
    }

    /// Reads a JSON number (RFC 8259 §6) whose syntax has been checked already; returns `nil` if
    /// ``init(mantissa:exponent:)`` does.
    package init?(decimal digits: some RandomAccessCollection<UInt8>) {
        var mantissa: UInt64 = 0
        var exponent = 0
        var count = 0
        var isFraction = false
        for byte in digits {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                // At most 18 significant digits, which fit 64 bits.
                count += mantissa == 0 ? 0 : 1
                guard count < 18 else { return nil }
                mantissa = mantissa * 10 + UInt64(byte - 0x30)
                exponent -= isFraction ? 1 : 0
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "-") where mantissa == 0 && !isFraction: continue
            default: return nil
            }
        }
        self.init(mantissa: mantissa, exponent: exponent)
        if digits.first == UInt8(ascii: "-") { self.negate() }
    }
}
