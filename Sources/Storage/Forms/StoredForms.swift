package import RelayModel

extension LogPosition {
    /// As engines keep it: positions never reach 2^63.
    package var stored: Int64 { Int64(clamping: rawValue) }

    /// Reads what ``stored`` wrote.
    package init(stored: Int64) {
        self.init(UInt64(clamping: stored))
    }
}

extension Timestamp {
    /// Nanoseconds since 1970; saturates in the years 1677 and 2262.
    package var stored: Int64 {
        let (product, overflowed) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, overflowedToo) = product.addingReportingOverflow(Int64(nanoseconds))
        return overflowed || overflowedToo ? (seconds < 0 ? .min : .max) : sum
    }

    /// Reads what ``stored`` wrote.
    package init(stored: Int64) {
        let (quotient, remainder) = stored.quotientAndRemainder(dividingBy: 1_000_000_000)
        let isBelow = remainder < 0
        self.init(
            seconds: isBelow ? quotient - 1 : quotient,
            nanoseconds: Int32(isBelow ? remainder + 1_000_000_000 : remainder))
    }
}

extension UInt64 {
    /// As engines keep a serial, which never reaches 2^63.
    package var stored: Int64 { Int64(clamping: self) }
}

extension DedupeKey.Kind {
    /// The number by which engines keep it.
    package var stored: Int64 {
        switch self {
        case .position: 1
        case .delivery: 2
        case .content: 3
        case .expression: 4
        }
    }
}
