/// A place inside the log's fan-out.
package struct ProgressMark: Sendable, Hashable, Comparable {
    /// Every entry up to this position is settled.
    package let position: LogPosition
    /// How many deliveries of the next entry are settled too.
    package let offset: UInt32

    /// The mark of a new log.
    package static let start = ProgressMark(position: .start, offset: 0)

    package init(position: LogPosition, offset: UInt32) {
        self.position = position
        self.offset = offset
    }

    /// Compares by position, then by offset.
    package static func < (left: ProgressMark, right: ProgressMark) -> Bool {
        (left.position, left.offset) < (right.position, right.offset)
    }
}
