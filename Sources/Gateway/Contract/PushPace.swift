/// How many pushes of one container while others send, or of ranges, are with the gateway at once.
///
/// Pushes beyond those that the gateway works on only wait there, and all later ones wait behind
/// them: a huge fan-out would delay every other push. So the width follows the latency, as the
/// window of TCP Vegas does (Brakmo and Peterson 1995). It grows while answers take less than about
/// twice the shortest latency, and shrinks when they take longer. The shortest latency is measured
/// again from time to time, as in BBR, with few pushes on their way.
package struct PushPace: Sendable {
    /// The minimum width, which is also the width at which the shortest latency is measured.
    static let least = 16
    /// The width at the beginning.
    package static let first = 64
    /// The part of a latency that is never taken for waiting, however short the shortest latency
    /// was.
    static let slack = Duration.milliseconds(2)
    /// The number of adjustments after which the shortest latency is measured again.
    static let adjustmentsBetweenProbes = 64

    private let most: Int
    package private(set) var width: Int
    /// The number of pushes that were handed over and have not ended.
    package private(set) var open = 0
    private var quickest: Duration?
    private var total = Duration.zero
    private var answered = 0
    private var adjustments = 0
    private var widthBeforeProbe: Int?

    /// Creates a pace with at most `most` pushes at once.
    package init(most: Int) {
        precondition(most > 0)
        self.most = most
        width = min(Self.first, most)
    }

    /// The number of pushes that may still be handed to the gateway.
    package var room: Int { max(0, width - open) }

    /// Notes that pushes were handed over.
    package mutating func begin(_ count: Int = 1) {
        open += count
    }

    /// Notes that one push has ended.
    ///
    /// `latency` is zero if it never got to a connection. Then it says nothing.
    package mutating func end(after latency: Duration) {
        open = max(0, open - 1)
        // While the shortest latency is measured, pushes that were queued before do not count.
        guard latency > .zero, widthBeforeProbe == nil || open < Self.least else { return }
        quickest = min(latency, quickest ?? latency)
        total += latency
        answered += 1
        if answered >= (widthBeforeProbe == nil ? width : 2 * Self.least) { adjust() }
    }

    private mutating func adjust() {
        if let before = widthBeforeProbe {
            width = before
            widthBeforeProbe = nil
        } else if let quickest, total / answered > quickest * 2 + Self.slack {
            width = max(min(Self.least, most), width - max(1, width / 8))
        } else {
            width = min(most, width + max(1, width / 8))
        }
        total = .zero
        answered = 0
        adjustments += 1
        if adjustments.isMultiple(of: Self.adjustmentsBetweenProbes), width > Self.least {
            widthBeforeProbe = width
            width = Self.least
            quickest = nil
        }
    }
}
