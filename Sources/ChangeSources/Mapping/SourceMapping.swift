package import RelayModel

/// The rules by which a source's tables and columns become record types, record names and so on.
///
/// Everything has a default. With an empty mapping, the table's name is the record type and the
/// preset's key column makes the record name.
package struct SourceMapping: Sendable, Hashable {
    /// The default template, with which the table's name is the record type.
    static let usualTemplate = "{table}"

    /// Record types by table, looked up as `schema.table` and then as `table`.
    package var recordTypes: [String: RecordType] = [:]
    /// The template of the record type of every other table, with `{database}`, `{schema}` and
    /// `{table}`.
    package var recordTypeTemplate = Self.usualTemplate
    /// The key columns of every table without its own; `nil` means the preset's.
    package var key: [String]?
    /// The key columns by table, looked up as `schema.table` and then as `table`.
    package var keys: [String: [String]] = [:]
    /// The places in all rows of everything that a change needs besides its fields.
    package var places = RowPlaces()
    /// The places that differ by table, looked up as `schema.table` and then as `table`.
    package var tables: [String: TablePlaces] = [:]
    /// Column types that JSON cannot express, looked up as `table.column` and then as `column`.
    package var columns: [String: ColumnType] = [:]
    /// Tables whose changes are accepted and dropped, as `schema.table` or `table`.
    package var ignoredTables: Set<String> = []
    /// The places that identify a change if the source does not; all of them must have a value.
    package var dedupe: [ValuePlace] = []
    /// How much of the row a before image shows.
    package var beforeImage = BeforeImageRule.auto
    /// Whether the source's own position orders a record's changes.
    package var order = ChangeOrder.position
    /// The place of the table's name, for bodies without a fixed place for it.
    package var table: ValuePlace?
    /// The shape of the body, for the preset `custom`.
    package var body: BodyLayout?

    package init() {}

    /// All places that the mapping names, in no particular order.
    var allPlaces: [ValuePlace] {
        places.all + tables.values.flatMap(\.all) + dedupe
            + [table, body?.operation].compactMap { $0 }
    }
}

/// The place of a value in a webhook.
package enum ValuePlace: Sendable, Hashable {
    /// A constant text instead of a place.
    case constant(String)
    /// A header.
    case header(String)
    /// A column of the row, taken from the after image, or else from the before image.
    case column(String)
    /// A place in the body, or in the element of a batch.
    case pointer(JSONPointer)
}

/// How much of the row a before image shows.
package enum BeforeImageRule: String, Sendable, Hashable, CaseIterable {
    /// The whole row if the source always sends it, or else what the row itself suggests.
    case auto
    /// The whole row.
    case full
    /// Some columns. Absent columns are unknown.
    case partial
    /// The key columns. The source makes up all other values.
    case keys
}

/// The order of the changes of one record.
package enum ChangeOrder: String, Sendable, Hashable, CaseIterable {
    /// By the source's position or version, where there is one.
    case position
    /// By arrival, unless the mapping names a version.
    case arrival
}

/// The shape of a body that no preset describes.
package struct BodyLayout: Sendable, Hashable {
    /// The place of the array of changes; `nil` means that the body is one change, or an array of
    /// them.
    package var items: JSONPointer?
    /// The place of the word for the operation.
    package var operation: ValuePlace
    /// The meaning of the words, which are compared without regard to case.
    package var operations: [String: ChangeOperation]
    /// The place of the row before the change.
    package var before: JSONPointer?
    /// The place of the row after the change.
    package var after: JSONPointer?
    /// Whether the after image shows every column.
    package var afterCompleteness: ImageCompleteness

    /// Words for insertions, updates and deletions in their usual spellings.
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
