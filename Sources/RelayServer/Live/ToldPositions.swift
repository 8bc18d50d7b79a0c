import RelayModel

/// The changes that a connection was told of last.
///
/// Few, until somebody asks: nearly nobody ever does.
struct ToldPositions: Sendable {
    /// Positions that are kept before somebody has asked, and after it.
    static let (few, many) = (32, 1024)

    private var positions: [LogPosition] = []
    /// The place that is written over next, once all are taken.
    private var oldest = 0
    private var most = few

    /// Notes a change that the connection was told of.
    mutating func note(_ position: LogPosition) {
        guard positions.count >= most else { return positions.append(position) }
        positions[oldest] = position
        oldest = (oldest + 1) % most
    }

    /// Whether the connection was told of a change, as far as that is remembered; from now on it is
    /// remembered longer.
    mutating func contains(_ position: LogPosition) -> Bool {
        most = Self.many
        return positions.contains(position)
    }
}
