package import ChangeSources
import PostgresLink

extension FollowSettings {
    /// Creates the settings for what a source follows by itself.
    ///
    /// - Throws: ``FollowProblem/badURL(_:)`` with what is wrong with the URL, without its text.
    package init(_ definition: FollowDefinition, authorities: String?) throws(FollowProblem) {
        self.init(try PostgresTarget.followed(definition.url))
        way = definition.readsOutbox ? .outbox : .slot
        publication = definition.publication
        slot = definition.slot
        makes = definition.makes
        tables = definition.tables
        takesSnapshot = definition.takesSnapshot
        retainedWarning = UInt64(definition.warnMegabytes) * 1_048_576
        self.authorities = authorities
    }
}

extension FollowDefinition {
    /// The configured tables, as `schema.table` without quotation marks.
    package var tablePlaces: [String] {
        tables.map { "\($0.tableParts.schema).\($0.tableParts.table)" }
    }
}
