import PostgresLink
import Storage
import StorageSQL

extension MoveMark {
    /// Gives a store back that is part of a move, and refuses it.
    ///
    /// - Throws: ``MoveMark/refusal(at:)`` if it is.
    static func refuse(
        _ place: PostgresPlace, epoch: Int64, _ connection: PostgresConnection
    ) throws {
        let rows = try connection.query("SELECT direction, place FROM storeMove")
        guard let row = rows.first, let direction = row[0].flatMap(Direction.init) else { return }
        try Ownership.release(epoch: epoch, connection)
        throw MoveMark.refusal(of: direction, otherEnd: row[1] ?? "", at: "\(place)")
    }
}
