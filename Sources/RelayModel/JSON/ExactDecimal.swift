extension Double {
    /// The powers of ten that a double holds exactly.
    private static let exactPowers: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ]

    /// The double nearest to `mantissa` · 10^`exponent`, where one rounding decides it; otherwise
    /// `nil`.
    ///
    /// A product or quotient of two exact doubles is rounded once, so it is what a correct reader
    /// of decimals answers (W. D. Clinger, 1990). That covers numbers of up to 15 digits.
    package init?(mantissa: UInt64, exponent: Int) {
        guard mantissa <= 1 << 53, (-22...22).contains(exponent) else { return nil }
        let power = Self.exactPowers[Int(exponent.magnitude)]
        self = exponent < 0 ? Double(mantissa) / power : Double(mantissa) * power
    }

    /// Reads a number of JSON (RFC 8259 §6) whose form has been checked, if
    /// ``init(mantissa:exponent:)`` can answer.
    package init?(decimal digits: some RandomAccessCollection<UInt8>) {
        var mantissa: UInt64 = 0
        var exponent = 0
        var count = 0
        var isFraction = false
        for byte in digits {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                // Nineteen digits fit 64 bits.
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
