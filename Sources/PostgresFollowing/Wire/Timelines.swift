/// A server's log: whose it is, the timeline that it writes, and where those before it ended.
///
/// A standby that is promoted, and a server that is recovered to an earlier moment, begin a new
/// timeline at a place which the former one may have passed: then places alone do not say which of
/// two changes is the later one.
package struct Timelines: Sendable, Hashable {
    private struct Former: Sendable, Hashable {
        let number: Int64
        let end: PostgresPosition
    }

    /// The identifier of the server's cluster, which a place is unique in.
    package let system: String
    /// The timeline that is written.
    package let current: Int64
    /// Those before it, the oldest first.
    private let former: [Former]

    /// - Parameters:
    ///   - system: the identifier of the server's cluster.
    ///   - current: the number of the timeline that is written; the first one is 1.
    ///   - history: PostgreSQL's own file of those before it, a line each: its number, where it
    ///     ended, and why. Of what is not in there, all is taken for the current one's.
    package init(system: String = "", current: Int64 = 1, history: String = "") {
        self.system = system
        self.current = max(current, 1)
        former = history.split(separator: "\n").compactMap { line in
            let words = line.split(maxSplits: 2) { $0 == "\t" || $0 == " " }
            // They are counted with from 1 on, whatever a server says.
            guard words.count >= 2, let number = Int64(words[0]), number > 0,
                let end = PostgresPosition(words[1])
            else { return nil }
            return Former(number: number, end: end)
        }
    }

    /// Where a timeline before this one ended, which is where the next one begins.
    func end(of number: Int64) -> PostgresPosition? {
        former.first { $0.number == number }?.end
    }

    /// The timeline on which something that begins at `place` was written.
    package func number(at place: PostgresPosition) -> Int64 {
        former.first { place < $0.end }?.number ?? current
    }

    /// A version for a change that was committed at `place`: higher than those of all that were
    /// before it, on any timeline, and on servers that are older than this one.
    ///
    /// A timeline counts as 4 TiB, and a second of the moment at which the server's cluster was
    /// made as 1 GiB: so much can nobody have written beyond the place where two timelines part,
    /// nor all the time. PostgreSQL counts timelines anew when it is upgraded, in a new cluster.
    package func version(of place: PostgresPosition) -> Int64 {
        let (sum, isTooHigh) = Int64(clamping: place.rawValue)
            .addingReportingOverflow(base(of: number(at: place)))
        return isTooHigh ? .max : sum
    }

    /// What the versions of an outbox's rows have more than their numbers.
    ///
    /// These begin with the microseconds of when it was made, which no log comes to in bytes: so
    /// they are higher than what a slot of the server told before.
    var baseOfRows: Int64 { base(of: current) }

    private static let step: Int64 = 1 << 42
    private static let mostSteps: Int64 = 1 << 14
    /// As many seconds count as a timeline.
    private static let secondsOfStep: Int64 = 4096
    private static let secondsUntil2000: Int64 = 946_684_800

    private func base(of number: Int64) -> Int64 {
        // The upper half of a cluster's identifier is the moment at which it was made.
        let made = Int64(clamping: (UInt64(system) ?? 0) >> 32)
        return max(made - Self.secondsUntil2000, 0) * (Self.step / Self.secondsOfStep)
            + min(number - 1, Self.mostSteps) * Self.step
    }

    /// The place of a change that has `version`, if it was committed on this server.
    package func place(inVersion version: Int64) -> PostgresPosition? {
        // What is posted says any version.
        guard version >= 0 else { return nil }
        for number in [current] + former.map(\.number).reversed() {
            let rest = version - base(of: number)
            guard rest >= 0 else { continue }
            let place = PostgresPosition(rawValue: UInt64(rest))
            if self.number(at: place) == number { return place }
        }
        return nil
    }

    /// What names of changes begin with, so that those of two timelines differ.
    package func prefix(at place: PostgresPosition) -> String {
        let number = number(at: place)
        return number == 1 ? system : "\(system).\(number)"
    }

    /// Whether this log has all that another one of the same server had up to `place`.
    ///
    /// - Parameters:
    ///   - other: the timelines as they were.
    ///   - place: up to where that log was read.
    ///   - written: up to where this one is written.
    /// - Returns: Whether nothing of it is missing here.
    package func hasAll(
        of other: Timelines, upTo place: PostgresPosition, written: PostgresPosition
    ) -> Bool {
        guard place <= written else { return false }
        if other.current == current { return true }
        return end(of: other.current).map { place <= $0 } ?? false
    }
}
