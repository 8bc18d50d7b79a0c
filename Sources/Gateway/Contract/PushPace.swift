/// How many pushes of one container beside others, or of ranges, are underway at once.
///
/// What is with a gateway beyond what it works on only waits there, and whatever comes next waits
/// behind it: a huge fan-out would make every other push late. So the width follows the latency, as
/// TCP Vegas lets its window (Brakmo and Peterson 1995): it grows while answers take less than
/// about twice as long as the quickest, and shrinks when they take longer. How long the quickest
/// takes is felt for anew from time to time, as BBR does, with few pushes on their way.
package struct PushPace: Sendable {
    /// The narrowest width, and that at which the quickest answer is felt for.
    static let least = 16
    /// The width at the beginning.
    package static let first = 64
    /// A latency below this is no sign of waiting, however quick the quickest was.
    static let slack = Duration.milliseconds(2)
    /// How many adjustments pass before the quickest answer is measured anew.
    static let adjustmentsBetweenProbes = 64

    private let most: Int
    package private(set) var width: Int
    /// How many were handed over and have not ended.
    package private(set) var open = 0
    private var quickest: Duration?
    private var total = Duration.zero
    private var answered = 0
    private var adjustments = 0
    private var widthBeforeProbe: Int?

    /// Never more than `most` at once.
    package init(most: Int) {
        precondition(most > 0)
        self.most = most
        width = min(Self.first, most)
    }

    /// How many more may be handed to the gateway.
    package var room: Int { max(0, width - open) }

    /// Pushes that were handed over.
    package mutating func begin(_ count: Int = 1) {
        open += count
    }

    /// One has ended; `latency` is zero if it never got to a connection, and says nothing then.
    package mutating func end(after latency: Duration) {
        open = max(0, open - 1)
        // While it is felt for, what stood in line before does not count.
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
