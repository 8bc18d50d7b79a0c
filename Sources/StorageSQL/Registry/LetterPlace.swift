import FoundationEssentials
import Storage

/// A place among the dead letters of a container, ordered by the moment at which they ended.
struct LetterPlace: Sendable, Comparable {
    /// The place before all dead letters.
    static let beginning = LetterPlace(endedAt: .min, deliveryID: Data())

    private let endedAt: Int64
    private let deliveryID: Data

    /// Returns the place of the last dead letter, or `nil` if there is none.
    static func last(of container: StoredContainer, in db: Database) throws -> Self? {
        try Row.fetchOne(
            db,
            sql: """
                SELECT endedAt, deliveryID FROM deadLetter WHERE container = ?
                ORDER BY endedAt DESC, deliveryID DESC LIMIT 1
                """, arguments: [container.id]
        ).map { LetterPlace(endedAt: $0[0], deliveryID: $0[1]) }
    }

    /// Returns those of the next `limit` dead letters that match the reason and `isWanted`, and the
    /// place after them.
    ///
    /// `isWanted` gets the text of the stored delivery. Without it, no text is read.
    func portion(
        upTo end: LetterPlace, of container: StoredContainer, _ reason: String?, _ limit: Int,
        where isWanted: ((String) -> Bool)?, in db: Database
    ) throws -> (letters: [Data], next: LetterPlace) {
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT endedAt, deliveryID\(isWanted == nil ? "" : ", body") FROM deadLetter
                WHERE container = ?1 AND (endedAt, deliveryID) > (?2, ?3)
                    AND (endedAt, deliveryID) <= (?4, ?5)
                    AND (?6 IS NULL OR reason = ?6)
                ORDER BY endedAt, deliveryID LIMIT ?7
                """,
            arguments: [
                container.id, endedAt, deliveryID, end.endedAt, end.deliveryID, reason, limit,
            ])
        var letters: [Data] = []
        var next = self
        var count = 0
        while let row = try rows.next() {
            count += 1
            next = LetterPlace(endedAt: row[0], deliveryID: row[1])
            if isWanted?(row[2]) ?? true { letters.append(next.deliveryID) }
        }
        return (letters, count < limit ? end : next)
    }

    static func < (left: Self, right: Self) -> Bool {
        if left.endedAt != right.endedAt { return left.endedAt < right.endedAt }
        return left.deliveryID.lexicographicallyPrecedes(right.deliveryID)
    }
}
