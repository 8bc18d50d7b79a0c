package import ChangeSources

/// What is known of a table: its columns, their kinds, and the key that names a row.
package struct TableShape: Sendable, Hashable {
    package let relation: Relation
    package let kinds: [PostgresKind]
    /// The columns of the primary key, or else of the replica identity; empty if there are none.
    package let key: [String]
    /// Whether the table is partitioned, so that its rows are those of its partitions.
    package let isPartitioned: Bool
    /// Whether two of its rows may have the same key within a transaction (`DEFERRABLE`).
    package let isKeyDeferrable: Bool

    /// Creates the shape of a table, and decides which columns name its rows.
    ///
    /// - Parameters:
    ///   - relation: The table as the log describes it.
    ///   - namingKey: The columns of the primary key in the key's order, from the catalogue; empty
    ///     if only the log can tell.
    ///   - types: The types that users created.
    ///   - isIdentityTold: Whether the log has all columns of the index that is the replica
    ///     identity, including generated ones.
    ///   - isPartitioned: Whether its rows are those of its partitions.
    ///   - isKeyDeferrable: Whether two of its rows may have the same key within a transaction.
    package init(
        _ relation: Relation, namingKey: [String], types: TypeCatalogue,
        isIdentityTold: Bool = true, isPartitioned: Bool = false, isKeyDeferrable: Bool = false
    ) {
        self.relation = relation
        self.isPartitioned = isPartitioned
        self.isKeyDeferrable = isKeyDeferrable
        kinds = relation.columns.map { types.kind(of: $0.type) }
        let names = Set(relation.columns.map(\.name))
        let marked = relation.columns.filter(\.isIdentity).map(\.name)
        let isByPrimaryKey = relation.identity == UInt8(ascii: "d") && !marked.isEmpty
        if isByPrimaryKey, !isIdentityTold {
            key = []
        } else if isByPrimaryKey, Set(marked) != Set(namingKey) {
            // The catalogue shows another moment; the log says which columns the key had at the
            // change.
            key = marked
        } else if !namingKey.isEmpty, namingKey.allSatisfy(names.contains) {
            key = namingKey
        } else if relation.identity == UInt8(ascii: "f") {
            // In this case all columns are marked, which does not tell which of them name the row.
            key = []
        } else {
            key = isIdentityTold ? marked : []
        }
    }

    /// The columns that a row before a change has if it is not whole.
    var identity: [String] {
        relation.identity == UInt8(ascii: "f")
            ? key : relation.columns.filter(\.isIdentity).map(\.name)
    }

    /// Returns the row before a change, with a whole row turned into a key if it must be one.
    ///
    /// The server calls a row whole if the partitioned table says so. But a partition has a replica
    /// identity of its own, and may have logged only the key: then the other columns are NULL. If
    /// the identity is another index, the columns of the key are NULL, which they are in no real
    /// row.
    func former(_ row: FormerRow?) -> FormerRow? {
        guard isPartitioned, case .whole(let values)? = row else { return row }
        let columns = zip(relation.columns, values)
        let isNamed = columns.allSatisfy { column, value in
            value != .null || !key.contains(column.name)
        }
        let others = columns.filter { column, _ in !key.contains(column.name) }
        return isNamed && (others.isEmpty || others.contains { _, value in value != .null })
            ? row : .key(values)
    }
}

extension Relation {
    /// Returns whether the table has all these columns.
    func has(_ names: [String]) -> Bool {
        names.allSatisfy { name in columns.contains { $0.name == name } }
    }

    /// Returns the former names of a key's columns, if columns were renamed since.
    ///
    /// Columns that still exist keep their order, and new ones come after them. So renamed columns
    /// are between the same two columns that were not renamed, or after the last of these, unless
    /// other columns there were dropped.
    ///
    /// - Parameters:
    ///   - key: The present names of the key's columns.
    ///   - now: All present columns of the table, in its order.
    /// - Returns: The former names, or `nil` if they cannot be determined.
    func formerNames(of key: [String], among now: [String]) -> [String]? {
        let then = columns.map(\.name)
        let kept = then.filter(Set(now).contains)
        guard kept == now.filter(Set(then).contains) else { return nil }
        var former = Dictionary(kept.map { ($0, $0) }) { first, _ in first }
        var (oldRest, newRest) = (then[...], now[...])
        for name in kept.map(Optional.some) + [nil] {
            let old = oldRest.prefix { $0 != name }
            let new = newRest.prefix { $0 != name }
            oldRest = oldRest.dropFirst(old.count + 1)
            newRest = newRest.dropFirst(new.count + 1)
            guard old.count == new.count || name == nil && old.count < new.count else { continue }
            for (oldName, newName) in zip(old, new) { former[newName] = oldName }
        }
        let names = key.compactMap { former[$0] }
        return names.count == key.count ? names : nil
    }
}
