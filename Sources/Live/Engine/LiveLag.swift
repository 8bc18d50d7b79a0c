package import RelayModel

/// When a client fell behind: where in the log, and for the how many-th time.
///
/// It may do so twice at one position, where it is sent what no change made. What says so and what
/// says that it has read what was under way come by different ways: the count tells what is late
/// from what is new.
package struct LiveLag: Sendable, Hashable, Comparable {
    package let position: LogPosition
    package let count: Int

    package init(_ position: LogPosition, count: Int = 1) {
        self.position = position
        self.count = count
    }

    package static func < (one: LiveLag, other: LiveLag) -> Bool {
        (one.position, one.count) < (other.position, other.count)
    }
}
