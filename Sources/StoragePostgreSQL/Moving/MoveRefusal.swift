import PostgresLink
import Storage
import StorageSQL

extension MoveMark {
    /// Refuses a store that is part of a move, and releases its ownership.
    ///
    /// - Parameters:
    ///   - place: The place of the store.
    ///   - owner: The owner's name and epoch; `nil` if the caller does not own the store.
    ///   - connection: A connection without a transaction.
    ///   - patience: How long the answer may take.
    /// - Throws: ``MoveMark/refusal(at:)`` if the store is part of a move.
    static func refuse(
        _ place: PostgresPlace, owner: (name: String, epoch: Int64)?,
        _ connection: PostgresConnection, within patience: Duration = PostgresConnection.patience
    ) throws {
        let rows = try connection.query(
            "SELECT direction, place FROM storeMove", within: patience)
        guard let row = rows.first, let direction = row[0].flatMap(Direction.init) else { return }
        if let owner {
            try Ownership.release(epoch: owner.epoch, by: owner.name, connection)
        }
        throw MoveMark.refusal(of: direction, otherEnd: row[1] ?? "", at: "\(place)")
    }
}
