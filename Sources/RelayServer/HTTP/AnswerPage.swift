import RelayModel

/// The entries of an answer's page, limited in number and in bytes; it has at least one if the list
/// does.
struct AnswerPage {
    private(set) var entries: [JSONValue] = []
    private var room: Int
    private let limit: Int

    init(limit: Int, bytes: Int = Limits.maximumPageBytes) {
        self.limit = limit
        room = bytes
    }

    /// Whether no further entry fits.
    var isFull: Bool { entries.count >= limit || room <= 0 }

    /// Adds an entry.
    mutating func take(_ entry: JSONValue) {
        entries.append(entry)
        room -= entry.utf8.count
    }
}

extension APIError {
    /// The error for a part that no longer fits into an answer.
    static let answerIsFull = APIError(
        .quotaExceeded,
        "the answer would be longer than about \(Limits.maximumPageBytes) bytes; ask for this one "
            + "in another request")
}
