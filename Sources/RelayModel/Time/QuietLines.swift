/// Lines of a log that say the same one after the other: of each kind one is written, and then none
/// for a while, but how many these were.
///
/// Whoever asks again and again would fill the disk with them. A pure value; kinds are remembered
/// for good, so that nobody from outside may choose them.
package struct QuietLines<Kind: Hashable & Sendable>: Sendable {
    private struct Last: Sendable {
        var at: Duration
        var unwritten = 0
    }

    private let pause: Duration
    private var last: [Kind: Last] = [:]

    /// Writes one of a kind in `pause`.
    package init(pause: Duration = .seconds(10)) {
        self.pause = pause
    }

    /// Decides on a line at `moment`: how many of its kind were not written before it, or `nil` if
    /// it is not written either.
    package mutating func take(_ kind: Kind, at moment: Duration) -> Int? {
        // A clock that was set back keeps nobody silent.
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
