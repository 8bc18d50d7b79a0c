import RelayModel

/// The latest changes that a connection was sent.
///
/// Few are kept until one is asked for, because nearly no connection is ever asked.
struct ToldPositions: Sendable {
    /// The number of positions that are kept before and after the first question.
    static let (few, many) = (32, 1024)

    private var positions: [LogPosition] = []
    /// The index that is overwritten next, once the array is full.
    private var oldest = 0
    private var most = few

    /// Notes a change that the connection was sent.
    mutating func note(_ position: LogPosition) {
        guard positions.count >= most else { return positions.append(position) }
        positions[oldest] = position
        oldest = (oldest + 1) % most
    }

    /// Returns whether the connection was sent a change, as far as that is remembered; from now on
    /// more is remembered.
    mutating func contains(_ position: LogPosition) -> Bool {
        most = Self.many
        return positions.contains(position)
    }
}
