import Foundation
import GRDB
import Storage

/// A place among the dead letters of a container, by the moment at which they became that.
struct LetterPlace: Sendable, Comparable {
    /// Before all.
    static let beginning = LetterPlace(endedAt: .min, deliveryID: Data())

    private let endedAt: Int64
    private let deliveryID: Data

    /// The place of the last dead letter; `nil` if there is none.
    static func last(of container: StoredContainer, in db: Database) throws -> Self? {
        try Row.fetchOne(
            db,
            sql: """
                SELECT endedAt, deliveryID FROM deadLetter WHERE container = ?
                ORDER BY endedAt DESC, deliveryID DESC LIMIT 1
                """, arguments: [container.id]
        ).map { LetterPlace(endedAt: $0[0], deliveryID: $0[1]) }
    }

    /// The next dead letters that `condition` and the reason let through, and the place after them.
    func portion(
        upTo end: LetterPlace, of container: StoredContainer, _ reason: String?,
        _ condition: String, _ limit: Int, in db: Database
    ) throws -> (letters: [Data], next: LetterPlace) {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT endedAt, deliveryID FROM deadLetter
                WHERE container = ?1 AND (endedAt, deliveryID) > (?2, ?3)
                    AND (endedAt, deliveryID) <= (?4, ?5)
                    AND (?6 IS NULL OR reason = ?6) AND \(condition)
                ORDER BY endedAt, deliveryID LIMIT ?7
                """,
            arguments: [
                container.id, endedAt, deliveryID, end.endedAt, end.deliveryID, reason, limit,
            ])
        let letters = rows.map { $0[1] as Data }
        guard rows.count == limit, let last = rows.last else { return (letters, end) }
        return (letters, LetterPlace(endedAt: last[0], deliveryID: last[1]))
    }

    static func < (left: Self, right: Self) -> Bool {
        if left.endedAt != right.endedAt { return left.endedAt < right.endedAt }
        return left.deliveryID.lexicographicallyPrecedes(right.deliveryID)
    }
}
