package import RelayModel

/// How a source's tables and columns become record types, record names and the rest.
///
/// Everything has a default; an empty mapping takes the table's name for the record type and the
/// preset's key column for the record name.
package struct SourceMapping: Sendable, Hashable {
    /// The record type is the table's name.
    static let usualTemplate = "{table}"

    /// Record types by table, looked up as `schema.table` and then as `table`.
    package var recordTypes: [String: RecordType] = [:]
    /// The record type of every other table, from `{database}`, `{schema}` and `{table}`.
    package var recordTypeTemplate = Self.usualTemplate
    /// The key columns of every table without its own; `nil` means the preset's.
    package var key: [String]?
    /// The key columns by table, looked up as `schema.table` and then as `table`.
    package var keys: [String: [String]] = [:]
    /// Where rows have what a change needs beside its fields.
    package var places = RowPlaces()
    /// What stands elsewhere, by table, looked up as `schema.table` and then as `table`.
    package var tables: [String: TablePlaces] = [:]
    /// Columns whose kind JSON cannot say, by `table.column` and then by `column`.
    package var columns: [String: ColumnType] = [:]
    /// Tables whose changes are answered and dropped, as `schema.table` or `table`.
    package var ignoredTables: Set<String> = []
    /// What identifies a change where the source says nothing; all places must have a value.
    package var dedupe: [ValuePlace] = []
    /// What a before image shows.
    package var beforeImage = BeforeImageRule.auto
    /// Whether the source's own position orders a record's changes.
    package var order = ChangeOrder.position
    /// Where the table's name stands, for bodies that have no fixed place for it.
    package var table: ValuePlace?
    /// The shape of the body, for the preset `custom`.
    package var body: BodyLayout?

    package init() {}

    /// All places that it names, in no order.
    var allPlaces: [ValuePlace] {
        places.all + tables.values.flatMap(\.all) + dedupe
            + [table, body?.operation].compactMap { $0 }
    }
}

/// Where in a webhook a value stands.
package enum ValuePlace: Sendable, Hashable {
    /// Nowhere: it is always this text.
    case constant(String)
    /// In a header.
    case header(String)
    /// In a column of the row: of the after image, else of the before image.
    case column(String)
    /// In the body, or in the element of a batch.
    case pointer(JSONPointer)
}

/// What a before image shows.
package enum BeforeImageRule: String, Sendable, Hashable, CaseIterable {
    /// The whole row if the source always sends it; else what the row itself suggests.
    case auto
    /// The whole row.
    case full
    /// Some columns; those that are absent are unknown.
    case partial
    /// The key columns; everything else in it is invented by the source.
    case keys
}

/// What orders the changes of one record.
package enum ChangeOrder: String, Sendable, Hashable, CaseIterable {
    /// The source's position or version, where there is one.
    case position
    /// The order of arrival, unless the mapping names a version.
    case arrival
}

/// The shape of a body that no preset knows.
package struct BodyLayout: Sendable, Hashable {
    /// The array of changes; `nil` means that the body is one change, or an array of them.
    package var items: JSONPointer?
    /// Where the word for the operation stands.
    package var operation: ValuePlace
    /// What the words mean; compared without regard to case.
    package var operations: [String: ChangeOperation]
    /// Where the row before the change stands.
    package var before: JSONPointer?
    /// Where the row after the change stands.
    package var after: JSONPointer?
    /// Whether the after image shows every column.
    package var afterCompleteness: ImageCompleteness

    /// Insert, update and delete in their usual spellings.
    package static let usualOperations: [String: ChangeOperation] = [
        "insert": .create, "create": .create, "created": .create, "c": .create,
        "update": .update, "updated": .update, "u": .update,
        "delete": .delete, "deleted": .delete, "remove": .delete, "d": .delete,
    ]

    package init(
        items: JSONPointer? = nil, operation: ValuePlace,
        operations: [String: ChangeOperation] = usualOperations, before: JSONPointer? = nil,
        after: JSONPointer? = nil, afterCompleteness: ImageCompleteness = .full
    ) {
        self.items = items
        self.operation = operation
        self.operations = operations
        self.before = before
        self.after = after
        self.afterCompleteness = afterCompleteness
    }
}
