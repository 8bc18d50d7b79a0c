import Live

/// Up to where a stream was read, as browsers send it back: where the client stands, and with which
/// version of its set.
///
/// Only what closes a whole set has one, so that whoever comes back with it has been told the
/// beginning of every query that was declared until then, and of no other.
struct LiveEventID: Sendable, Hashable {
    let token: LiveToken
    /// The version of the set that had been told.
    let version: Int64

    /// The ID of a frame that closes a set of this version; `nil` if it closes none.
    init?(of frame: LiveFrame, version: Int64) {
        guard version > 0, let token = frame.token.flatMap({ LiveToken($0) }) else { return nil }
        self.token = token
        self.version = version
    }

    /// Reads what ``text`` wrote; `nil` if it is something else.
    init?(_ text: String) {
        // By bytes: what a client wrote may be as long as a head, and letters are dear from behind.
        let bytes = text.utf8
        guard let end = bytes.lastIndex(of: UInt8(ascii: ".")),
            let token = LiveToken(String(text[..<end])),
            let version = Int64(text[bytes.index(after: end)...])
        else { return nil }
        self.token = token
        self.version = version
    }

    /// The ID as browsers keep it.
    var text: String { "\(token.text).\(version)" }

    /// Whether the beginning of a query had been told.
    func covers(_ query: DeclaredQuery) -> Bool { (query.declaration?.version ?? 0) <= version }
}
