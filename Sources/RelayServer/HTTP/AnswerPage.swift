import RelayModel

/// The entries of a list's answer, bounded in number and in bytes; there is one at least.
struct AnswerPage {
    private(set) var entries: [JSONValue] = []
    private var room: Int
    private let limit: Int

    init(limit: Int, bytes: Int = Limits.maximumPageBytes) {
        self.limit = limit
        room = bytes
    }

    /// Whether nothing more is taken.
    var isFull: Bool { entries.count >= limit || room <= 0 }

    /// Takes an entry.
    mutating func take(_ entry: JSONValue) {
        entries.append(entry)
        room -= entry.utf8.count
    }
}

extension APIError {
    /// What stands before it in the same answer is as much as an answer holds.
    static let answerIsFull = APIError(
        .quotaExceeded,
        "an answer holds \(Limits.maximumPageBytes) bytes, about; ask for this one again in a "
            + "request of its own")
}
