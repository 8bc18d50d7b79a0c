import Live

/// How far a stream was read, as browsers send it back: a token, and the version of the set.
///
/// Only a frame that closes a whole set has an ID. So a client that returns with one has been sent
/// the beginning of all queries that were declared up to then, and of no others.
struct LiveEventID: Sendable, Hashable {
    let token: LiveToken
    /// The version of the set that had been sent completely.
    let version: Int64

    /// Creates the ID of a frame that closes a set of this version; `nil` if it closes none.
    init?(of frame: LiveFrame, version: Int64) {
        guard version > 0, let token = frame.token.flatMap({ LiveToken($0) }) else { return nil }
        self.token = token
        self.version = version
    }

    /// Parses the output of ``text``; `nil` for other texts.
    init?(_ text: String) {
        // By bytes: the text may be as long as a head, and finding characters from its end is slow.
        let bytes = text.utf8
        guard let end = bytes.lastIndex(of: UInt8(ascii: ".")),
            let token = LiveToken(String(text[..<end])),
            let version = Int64(text[bytes.index(after: end)...])
        else { return nil }
        self.token = token
        self.version = version
    }

    /// The text that browsers keep.
    var text: String { "\(token.text).\(version)" }

    /// Returns whether the beginning of a query had been sent.
    func covers(_ query: DeclaredQuery) -> Bool { (query.declaration?.version ?? 0) <= version }
}
