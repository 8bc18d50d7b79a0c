import Storage

/// The time of a request that goes in part by part.
///
/// Each part may wait for its turn; all together would wait without an end, and whoever sent the
/// request does not.
struct PartedTime: Sendable {
    /// How long it goes on after its first part: what senders wait for an answer, and less.
    static let most = Duration.seconds(10)

    private let turns: IntakeTurns?
    private var began: Duration?

    init(_ turns: IntakeTurns?) {
        self.turns = turns
    }

    /// A part has gone in: the time begins with the first.
    mutating func note() {
        if began == nil { began = turns?.moment }
    }

    /// Whether a further part may go in.
    ///
    /// - Throws: ``Storage/StorageError/bounded(_:reason:)`` if it took too long by now.
    func check() throws {
        guard let turns, let began, turns.moment - began > Self.most else { return }
        throw turns.refusal()
    }
}
