import ChangeSources
import PostgresFollowing

extension FollowDefinition {
    /// What an administrator of the database runs once.
    var preparingText: String {
        readsOutbox
            ? OutboxSQL(tables: tables, role: "belfry").text
            : PreparingSQL(publication: publication, slot: slot, tables: tables).text
    }
}
