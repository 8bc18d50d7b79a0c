import RelayModel

/// Whose turn it is to read: containers take turns, and within one whoever waits longest.
///
/// So a container that asks for much waits for itself, and not the others for it.
struct ReaderTurns: Sendable {
    /// Turns that nobody has.
    private(set) var free: Int
    private var lines: [ContainerKey: [UInt64]] = [:]
    /// The containers of which somebody waits, the next one first.
    private var order: [ContainerKey] = []

    init(free: Int) {
        self.free = max(1, free)
    }

    /// How many wait.
    var waiting: Int { lines.values.reduce(0) { $0 + $1.count } }

    /// Asks for a turn; returns whether it is given at once.
    mutating func ask(_ ticket: UInt64, of container: ContainerKey) -> Bool {
        guard free == 0 else {
            free -= 1
            return true
        }
        if lines[container] == nil { order.append(container) }
        lines[container, default: []].append(ticket)
        return false
    }

    /// Leaves the line; returns whether the ticket stood in it.
    mutating func withdraw(_ ticket: UInt64, of container: ContainerKey) -> Bool {
        guard var line = lines[container], let index = line.firstIndex(of: ticket) else {
            return false
        }
        line.remove(at: index)
        lines[container] = line.isEmpty ? nil : line
        if line.isEmpty { order.removeAll { $0 == container } }
        return true
    }

    /// Ends a turn; returns who has it now.
    mutating func finish() -> UInt64? {
        guard !order.isEmpty else {
            free += 1
            return nil
        }
        let container = order.removeFirst()
        var line = lines[container] ?? []
        let ticket = line.removeFirst()
        lines[container] = line.isEmpty ? nil : line
        if !line.isEmpty { order.append(container) }
        return ticket
    }
}
