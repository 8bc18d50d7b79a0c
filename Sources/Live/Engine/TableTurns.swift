import RelayModel

/// The queue of tables to be read, in which containers take turns; within one, the owners of its
/// private databases take turns, and the public database counts as one owner.
///
/// So a container whose users look at much delays only itself. This is a pure value.
struct TableTurns {
    private struct Line {
        /// The owners with waiting tables, the next one first.
        var owners: [UserID?] = []
        var tables: [UserID?: [LiveContainer.TableKey]] = [:]
        var waiting: Set<LiveContainer.TableKey> = []
    }

    private var lines: [ContainerKey: Line] = [:]
    /// The containers with waiting tables, the next one first.
    private var order: [ContainerKey] = []

    /// Adds a table, unless it waits already.
    mutating func append(_ table: LiveContainer.TableKey, of container: ContainerKey) {
        if lines[container] == nil { order.append(container) }
        var line = lines.removeValue(forKey: container) ?? Line()
        if line.waiting.insert(table).inserted {
            if line.tables[table.owner] == nil { line.owners.append(table.owner) }
            line.tables[table.owner, default: []].append(table)
        }
        lines[container] = line
    }

    /// Removes and returns the next table; `nil` if none waits.
    mutating func next() -> (container: ContainerKey, table: LiveContainer.TableKey)? {
        guard !order.isEmpty else { return nil }
        let container = order.removeFirst()
        guard var line = lines.removeValue(forKey: container) else { return nil }
        let owner = line.owners.removeFirst()
        var tables = line.tables.removeValue(forKey: owner) ?? []
        let table = tables.removeFirst()
        line.waiting.remove(table)
        if !tables.isEmpty {
            line.owners.append(owner)
            line.tables[owner] = tables
        }
        if !line.owners.isEmpty {
            order.append(container)
            lines[container] = line
        }
        return (container, table)
    }
}
