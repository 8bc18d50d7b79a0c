package import RelayModel

/// An occasion on which a client fell behind: the position in the log, and a count.
///
/// A client may fall behind twice at one position, because not all frames come from changes. The
/// report of it and the report that the client has read what was under way arrive on different
/// paths. The count tells a late report from a new one.
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
