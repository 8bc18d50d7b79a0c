/// Chooses which segments of a chain to look for at a destination.
///
/// A day has up to nine thousand segments, and a destination lists a thousand names at a time. So a
/// look is at the newest segments, where another relay would show, and at one older thousand after
/// the other.
struct SegmentLook {
    /// The number of segments whose names begin alike.
    static let size: UInt64 = 1000

    /// The older thousand to look at next.
    private var turn: UInt64 = 0

    /// Returns the thousands to look at now, of those with the segments from `first` to `last`.
    mutating func thousands(from first: UInt64, through last: UInt64) -> [UInt64] {
        let newest = last / Self.size
        guard newest > 0 else { return [0] }
        let older = min(first / Self.size, newest - 1)..<(newest - 1)
        guard let oldest = older.first else { return [newest - 1, newest] }
        let next = older.contains(turn) ? turn : oldest
        turn = next + 1
        return [next, newest - 1, newest]
    }
}
