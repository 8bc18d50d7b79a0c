/// The identity of a server's log: its cluster, its current timeline, and the ends of the earlier
/// ones.
///
/// A standby that is promoted, and a server that is recovered to an earlier moment, begin a new
/// timeline at a position that the former timeline may have passed. So positions alone do not say
/// which of two changes is later.
package struct Timelines: Sendable, Hashable {
    private struct Former: Sendable, Hashable {
        let number: Int64
        let end: PostgresPosition
    }

    /// The system identifier of the server's cluster; positions are unique only within a cluster.
    package let system: String
    /// The number of the current timeline.
    package let current: Int64
    /// The earlier timelines, the oldest first.
    private let former: [Former]

    /// Creates the timelines of a server.
    ///
    /// - Parameters:
    ///   - system: The system identifier of the server's cluster.
    ///   - current: The number of the current timeline; the first is 1.
    ///   - history: PostgreSQL's own history file: a line for each earlier timeline, with its
    ///     number, its end and the reason. Positions that it does not cover belong to the current
    ///     timeline.
    package init(system: String = "", current: Int64 = 1, history: String = "") {
        self.system = system
        self.current = max(current, 1)
        former = history.split(separator: "\n").compactMap { line in
            let words = line.split(maxSplits: 2) { $0 == "\t" || $0 == " " }
            // Other lines are ignored, whatever a server sends, because versions are computed from
            // the numbers.
            guard words.count >= 2, let number = Int64(words[0]), number > 0,
                let end = PostgresPosition(words[1])
            else { return nil }
            return Former(number: number, end: end)
        }
    }

    /// Returns the end of an earlier timeline, which is where the next one begins.
    func end(of number: Int64) -> PostgresPosition? {
        former.first { $0.number == number }?.end
    }

    /// Returns the number of the timeline on which the log at `place` was written.
    package func number(at place: PostgresPosition) -> Int64 {
        former.first { place < $0.end }?.number ?? current
    }

    /// Returns a version for a change that was committed at `place`.
    ///
    /// It is higher than the versions of all changes before it, on any timeline and on older
    /// servers. A timeline counts as 4 TiB, and a second of the time at which the cluster was
    /// created as 1 GiB. No server writes so much beyond the point where two timelines part, nor at
    /// such a rate all the time. An upgrade of PostgreSQL begins with timeline 1 again, but in a
    /// new cluster.
    package func version(of place: PostgresPosition) -> Int64 {
        let (sum, isTooHigh) = Int64(clamping: place.rawValue)
            .addingReportingOverflow(base(of: number(at: place)))
        return isTooHigh ? .max : sum
    }

    /// The base that is added to the numbers of an outbox's rows to get their versions.
    ///
    /// The numbers begin with the time at which the outbox was created, in microseconds. No log has
    /// as many bytes, so the versions are higher than those of the server's slot before.
    var baseOfRows: Int64 { base(of: current) }

    private static let step: Int64 = 1 << 42
    private static let mostSteps: Int64 = 1 << 14
    /// This many seconds count as much as one timeline.
    private static let secondsOfStep: Int64 = 4096
    private static let secondsUntil2000: Int64 = 946_684_800

    private func base(of number: Int64) -> Int64 {
        // The upper half of a cluster's system identifier is the time at which it was created.
        let made = Int64(clamping: (UInt64(system) ?? 0) >> 32)
        return max(made - Self.secondsUntil2000, 0) * (Self.step / Self.secondsOfStep)
            + min(number - 1, Self.mostSteps) * Self.step
    }

    /// Returns the position of a change with `version`; `nil` if it was not committed on this
    /// server.
    package func place(inVersion version: Int64) -> PostgresPosition? {
        // Posted changes may have any version.
        guard version >= 0 else { return nil }
        for number in [current] + former.map(\.number).reversed() {
            let rest = version - base(of: number)
            guard rest >= 0 else { continue }
            let place = PostgresPosition(rawValue: UInt64(rest))
            if self.number(at: place) == number { return place }
        }
        return nil
    }

    /// Returns the prefix of changes' names, which differs between timelines.
    package func prefix(at place: PostgresPosition) -> String {
        let number = number(at: place)
        return number == 1 ? system : "\(system).\(number)"
    }

    /// Returns whether this log contains everything that another log of the same server had up to
    /// `place`.
    ///
    /// - Parameters:
    ///   - other: The timelines as they were then.
    ///   - place: The position up to which that log was read.
    ///   - written: The position up to which this log is written.
    /// - Returns: Whether nothing is missing here.
    package func hasAll(
        of other: Timelines, upTo place: PostgresPosition, written: PostgresPosition
    ) -> Bool {
        guard place <= written else { return false }
        if other.current == current { return true }
        return end(of: other.current).map { place <= $0 } ?? false
    }
}
