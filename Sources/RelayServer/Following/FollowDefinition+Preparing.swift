import ChangeSources
import PostgresFollowing

extension FollowDefinition {
    /// The SQL that an administrator of the database runs once.
    var preparingText: String {
        readsOutbox
            ? OutboxSQL(tables: tables, role: "belfry").text
            : PreparingSQL(publication: publication, slot: slot, tables: tables).text
    }
}
