package import RelayModel

extension LogPosition {
    /// The position as engines store it.
    ///
    /// Positions never reach 2^63.
    package var stored: Int64 { Int64(clamping: rawValue) }

    /// Creates a position from its ``stored`` form.
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

    /// Creates a timestamp from its ``stored`` form.
    package init(stored: Int64) {
        let (quotient, remainder) = stored.quotientAndRemainder(dividingBy: 1_000_000_000)
        let isBelow = remainder < 0
        self.init(
            seconds: isBelow ? quotient - 1 : quotient,
            nanoseconds: Int32(isBelow ? remainder + 1_000_000_000 : remainder))
    }
}

extension UInt64 {
    /// The serial as engines store it.
    ///
    /// Serials never reach 2^63.
    package var stored: Int64 { Int64(clamping: self) }
}

extension DedupeKey.Kind {
    /// The number under which engines store the kind.
    package var stored: Int64 {
        switch self {
        case .position: 1
        case .delivery: 2
        case .content: 3
        case .expression: 4
        }
    }
}
