/// A moment of the monotonic clock, which the gateway's thread reads once a turn.
struct MonotonicInstant: Sendable, Hashable, Comparable {
    /// The nanoseconds since an arbitrary moment in the past.
    var nanoseconds: UInt64

    /// Returns this moment moved by `duration`, which must not be negative.
    func advanced(by duration: Duration) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: nanoseconds + duration.wholeNanoseconds)
    }

    /// The time since that arbitrary moment in the past.
    var sinceBeginning: Duration { .nanoseconds(Int64(clamping: nanoseconds)) }

    /// Returns the time from `earlier` to this moment, or zero if `earlier` is later.
    func duration(since earlier: MonotonicInstant) -> Duration {
        .nanoseconds(Int64(nanoseconds - min(nanoseconds, earlier.nanoseconds)))
    }

    /// Orders by time.
    static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// Nanoseconds, rounded down; negative durations count as zero.
    var wholeNanoseconds: UInt64 {
        guard self > .zero else { return 0 }
        return UInt64(components.seconds) * 1_000_000_000
            + UInt64(components.attoseconds / 1_000_000_000)
    }

    /// Whole milliseconds, rounded up; negative durations count as zero.
    var wholeMilliseconds: Int {
        Int((wholeNanoseconds + 999_999) / 1_000_000)
    }
}
