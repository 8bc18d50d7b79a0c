import Storage

/// The time limit of a request that is appended in parts.
///
/// Each part may wait for its turn. Without a limit, the parts together could wait forever, but the
/// sender waits only for a limited time.
struct PartedTime: Sendable {
    /// How long a request continues after its first part: less than senders wait for an answer.
    static let most = Duration.seconds(10)

    private let turns: IntakeTurns?
    private var began: Duration?

    init(_ turns: IntakeTurns?) {
        self.turns = turns
    }

    /// Records that a part was appended; the time begins with the first one.
    mutating func note() {
        if began == nil { began = turns?.moment }
    }

    /// Checks that a further part may be appended.
    ///
    /// - Throws: ``Storage/StorageError/bounded(_:reason:)`` if the request took too long.
    func check() throws {
        guard let turns, let began, turns.moment - began > Self.most else { return }
        throw turns.refusal()
    }
}
