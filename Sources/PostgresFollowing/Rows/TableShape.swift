package import ChangeSources

/// What is known of a table: its columns, their kinds, and what names a row.
package struct TableShape: Sendable, Hashable {
    package let relation: Relation
    package let kinds: [PostgresKind]
    /// The columns of the primary key, else of the replica identity; empty if there are none.
    package let key: [String]
    /// Whether its rows are those of its partitions.
    package let isPartitioned: Bool
    /// Whether two of its rows may have one name within a transaction (`DEFERRABLE`).
    package let isKeyDeferrable: Bool

    /// - Parameters:
    ///   - relation: the table as the log has it.
    ///   - namingKey: the columns that name a row, of the primary key in its order, as the
    ///     catalogue has them; empty where only the log may say.
    ///   - types: the types that users made.
    ///   - isIdentityTold: whether the log has all columns of the index that is the replica
    ///     identity, also generated ones.
    ///   - isPartitioned: whether its rows are those of its partitions.
    ///   - isKeyDeferrable: whether two of its rows may have one name within a transaction.
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
            // The catalogue is of another time: the log says which columns the key had then.
            key = marked
        } else if !namingKey.isEmpty, namingKey.allSatisfy(names.contains) {
            key = namingKey
        } else if relation.identity == UInt8(ascii: "f") {
            // All columns are marked then, and say nothing of which name the row.
            key = []
        } else {
            key = isIdentityTold ? marked : []
        }
    }

    /// The columns that a row before a change has, where it is not whole.
    var identity: [String] {
        relation.identity == UInt8(ascii: "f")
            ? key : relation.columns.filter(\.isIdentity).map(\.name)
    }

    /// The row before a change, as far as it is known.
    ///
    /// The server calls it whole where the partitioned table says so, though a partition has an
    /// identity of its own, and may have logged the key alone: the other columns are null then.
    /// Where that is another index, the columns of the key are null, which no row has so.
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
    /// Whether the table has all these columns.
    func has(_ names: [String]) -> Bool {
        names.allSatisfy { name in columns.contains { $0.name == name } }
    }

    /// What the columns of a key were called then, where columns were renamed since.
    ///
    /// All that are there still come in the order that they had, and new ones behind them. So those
    /// that were renamed stand between the same two that were not, or behind the last of these,
    /// unless others of there were dropped.
    ///
    /// - Parameters:
    ///   - key: their names of now.
    ///   - now: all columns of the table, in its order, as they are called now.
    /// - Returns: `nil` where that does not say it.
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
