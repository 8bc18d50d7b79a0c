/// What is known of a table: its columns, their kinds, and what names a row.
package struct TableShape: Sendable, Hashable {
    package let relation: Relation
    package let kinds: [ColumnKind]
    /// The columns of the primary key, else of the replica identity; empty if there are none.
    package let key: [String]

    /// - Parameters:
    ///   - relation: the table as the log has it.
    ///   - primaryKey: the columns of the primary key in its order, as the catalogue has them.
    ///   - types: the types that users made.
    package init(_ relation: Relation, primaryKey: [String], types: TypeCatalogue) {
        self.relation = relation
        kinds = relation.columns.map { types.kind(of: $0.type) }
        let names = Set(relation.columns.map(\.name))
        if !primaryKey.isEmpty, primaryKey.allSatisfy(names.contains) {
            key = primaryKey
        } else if relation.identity == UInt8(ascii: "f") {
            // All columns are marked then, and say nothing of which name the row.
            key = []
        } else {
            key = relation.columns.filter(\.isIdentity).map(\.name)
        }
    }
}
