/// Suppresses repeated log lines: one line of each kind is written, then none for a while, and the
/// next one says how many were suppressed.
///
/// Otherwise a client that repeats a failing request could fill the disk. The value has no clock.
/// It remembers kinds forever, so outsiders must not be able to choose them.
package struct QuietLines<Kind: Hashable & Sendable>: Sendable {
    private struct Last: Sendable {
        var at: Duration
        var unwritten = 0
    }

    private let pause: Duration
    private var last: [Kind: Last] = [:]

    /// Creates a filter that writes at most one line of a kind in `pause`.
    package init(pause: Duration = .seconds(10)) {
        self.pause = pause
    }

    /// Decides on a line at `moment`: returns the number of lines of its kind that were suppressed
    /// before it, or `nil` if this one is suppressed as well.
    package mutating func take(_ kind: Kind, at moment: Duration) -> Int? {
        // After the clock has been set back, the next line is written.
        if var last = last[kind], last.at <= moment, moment - last.at < pause {
            last.unwritten += 1
            self.last[kind] = last
            return nil
        }
        let unwritten = last[kind]?.unwritten ?? 0
        last[kind] = Last(at: moment)
        return unwritten
    }
}
