import RelayModel

/// An integer or a double.
enum Number {
    case integer(Int64)
    case double(Double)

    /// Creates the number of a value.
    ///
    /// Booleans are 1 and 0.
    init?(_ value: FieldValue) {
        switch value {
        case .integer(let number): self = .integer(number)
        case .double(let number): self = .double(number)
        case .bool(let flag): self = .integer(flag ? 1 : 0)
        default: return nil
        }
    }

    var value: FieldValue {
        switch self {
        case .integer(let number): .integer(number)
        case .double(let number): .double(number)
        }
    }

    var double: Double {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        }
    }

    /// Returns -1, 0 or 1 for the order of two numbers, or `nil` if one of them is NaN.
    ///
    /// The order is exact for every pair.
    static func order(_ left: Number, _ right: Number) -> Int? {
        switch (left, right) {
        case (.integer(let a), .integer(let b)): a == b ? 0 : a < b ? -1 : 1
        case (.double(let a), .double(let b)):
            a == b ? 0 : a < b ? -1 : a > b ? 1 : nil
        case (.integer(let a), .double(let b)): order(a, b)
        case (.double(let a), .integer(let b)): order(b, a).map { -$0 }
        }
    }

    /// Compares without rounding the integer to a double.
    private static func order(_ integer: Int64, _ double: Double) -> Int? {
        if double.isNaN { return nil }
        if double >= 0x1p63 { return -1 }
        if double < -0x1p63 { return 1 }
        let whole = double.rounded(.towardZero)
        let truncated = Int64(whole)
        if integer != truncated { return integer < truncated ? -1 : 1 }
        return double == whole ? 0 : double > whole ? -1 : 1
    }
}
