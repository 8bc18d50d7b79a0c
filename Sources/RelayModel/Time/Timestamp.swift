/// A moment, exact to the nanosecond, counted from 1970-01-01 00:00 UTC without leap seconds.
///
/// Record fields, log entries and progress use it. The type reads no clock; callers pass moments
/// in.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Whole seconds since 1970, rounded down.
    public let seconds: Int64
    /// The rest, 0 to 999,999,999.
    public let nanoseconds: Int32

    /// Creates a moment; `nanoseconds` must be 0 to 999,999,999.
    public init(seconds: Int64, nanoseconds: Int32 = 0) {
        precondition((0..<1_000_000_000).contains(nanoseconds))
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Creates a moment from Realm's form, in which the nanoseconds have the sign of the seconds;
    /// returns `nil` if the signs differ, or if there are 10^9 nanoseconds or more.
    public init?(seconds: Int64, signedNanoseconds nanoseconds: Int64) {
        switch nanoseconds {
        case 0..<1_000_000_000 where seconds >= 0 || nanoseconds == 0:
            self.init(seconds: seconds, nanoseconds: Int32(nanoseconds))
        case -999_999_999..<0 where seconds <= 0 && seconds > .min:
            self.init(seconds: seconds - 1, nanoseconds: Int32(nanoseconds + 1_000_000_000))
        default: return nil
        }
    }

    /// Creates a moment from CloudKit's form, milliseconds since 1970.
    public init(milliseconds: Int64) {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        let isBelow = remainder < 0
        self.init(
            seconds: isBelow ? quotient - 1 : quotient,
            nanoseconds: Int32((isBelow ? remainder + 1000 : remainder) * 1_000_000))
    }

    /// Creates a moment from a number of seconds since 1970, rounded to the microsecond, or returns
    /// `nil` if the number is not finite or out of range.
    ///
    /// (A double cannot represent the single nanoseconds of this century.)
    public init?(secondsSince1970 value: Double) {
        guard value.isFinite, abs(value) < 9e15 else { return nil }
        let whole = value.rounded(.down)
        var micros = ((value - whole) * 1_000_000).rounded()
        var seconds = Int64(whole)
        if micros >= 1_000_000 {
            micros = 0
            seconds += 1
        }
        self.init(seconds: seconds, nanoseconds: Int32(micros) * 1000)
    }

    /// Milliseconds since 1970, rounded down; the value saturates at the bounds of 64 bits.
    public var milliseconds: Int64 {
        let (product, overflowed) = seconds.multipliedReportingOverflow(by: 1000)
        if overflowed { return seconds < 0 ? .min : .max }
        return product.addingReportingOverflow(Int64(nanoseconds / 1_000_000)).partialValue
    }

    /// Seconds since 1970, rounded to the nearest double.
    public var secondsSince1970: Double {
        Double(seconds) + Double(nanoseconds) / 1e9
    }

    /// The earliest moment that this type can represent.
    public static let earliest = Timestamp(seconds: .min)
    /// The latest moment that this type can represent.
    public static let latest = Timestamp(seconds: .max, nanoseconds: 999_999_999)

    /// Whether the moment is in the years 0001 to 9999, as the moments in records must be.
    package var isPlausible: Bool {
        (-62_135_596_800...253_402_300_799).contains(seconds)
    }

    /// Returns this moment moved by `duration`, to the nanosecond.
    ///
    /// The result saturates at ``earliest`` and ``latest`` instead of overflowing, because a source
    /// may send any moment.
    public func advanced(by duration: Duration) -> Timestamp {
        let (addSeconds, attoseconds) = duration.components
        var nanos = Int64(nanoseconds) + attoseconds / 1_000_000_000
        let carry: Int64 = nanos < 0 ? -1 : (nanos >= 1_000_000_000 ? 1 : 0)
        nanos -= carry * 1_000_000_000
        let (seconds, overflows) = Self.sum(self.seconds, addSeconds, carry)
        if overflows { return duration < .zero ? .earliest : .latest }
        return Timestamp(seconds: seconds, nanoseconds: Int32(nanos))
    }

    private static func sum(
        _ first: Int64, _ second: Int64, _ carry: Int64
    ) -> (seconds: Int64, overflows: Bool) {
        let (near, isBeyond) = first.addingReportingOverflow(second)
        let (sum, isBeyondByCarry) = near.addingReportingOverflow(carry)
        // The carry may bring a sum that has just overflowed back into range.
        return (sum, isBeyond != isBeyondByCarry)
    }

    /// Returns the time from `earlier` to this moment, negative if `earlier` is later.
    ///
    /// The result saturates at the number of seconds that 64 bits hold, in either direction.
    public func duration(since earlier: Timestamp) -> Duration {
        let (difference, overflows) = seconds.subtractingReportingOverflow(earlier.seconds)
        if overflows { return .seconds(seconds < earlier.seconds ? Int64.min : .max) }
        if difference == .min { return .seconds(difference) }
        return .seconds(difference)
            + .nanoseconds(Int64(nanoseconds) - Int64(earlier.nanoseconds))
    }

    /// Compares by time.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}
