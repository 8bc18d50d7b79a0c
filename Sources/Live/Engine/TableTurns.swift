import RelayModel

/// Tables that wait to be read: containers take turns, and within one those whose databases they
/// are of, public ones as one.
///
/// So a container whose users look at much waits for itself, and no other one for it. A pure value.
struct TableTurns {
    private struct Line {
        /// Whose tables wait, the next one first.
        var owners: [UserID?] = []
        var tables: [UserID?: [LiveContainer.TableKey]] = [:]
        var waiting: Set<LiveContainer.TableKey> = []
    }

    private var lines: [ContainerKey: Line] = [:]
    /// The containers of which a table waits, the next one first.
    private var order: [ContainerKey] = []

    /// Lets a table wait, once.
    mutating func append(_ table: LiveContainer.TableKey, of container: ContainerKey) {
        if lines[container] == nil { order.append(container) }
        var line = lines.removeValue(forKey: container) ?? Line()
        if line.waiting.insert(table).inserted {
            if line.tables[table.owner] == nil { line.owners.append(table.owner) }
            line.tables[table.owner, default: []].append(table)
        }
        lines[container] = line
    }

    /// Takes the table that is next; `nil` if none waits.
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
