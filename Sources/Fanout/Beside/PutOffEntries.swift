import RelayModel
import Storage

/// The entries that are not worked in the log's turn: dear changes, and what came of their
/// containers after them.
///
/// What is active at a position is exact for each container: of one of which a change is judged
/// beside the log, everything waits in its order.
struct PutOffEntries {
    private struct Line {
        /// The place of the change that is judged.
        var judged: LogPosition
        var waiting: [FollowedEntry] = []
        /// The changes among those that wait.
        var changes = 0
    }

    /// Changes of all containers that may be put off; then the log waits.
    private static let mostChanges = 16
    /// Entries that may wait for them.
    private static let mostEntries = 1024

    private var lines: [ContainerKey: Line] = [:]
    private var entries = 0
    private var changes = 0
    /// What was handed over since the first of them was put off, those themselves too.
    private(set) var handedOver = 0

    /// Whether there are none.
    var isEmpty: Bool { lines.isEmpty }

    /// Whether as many are put off as may be.
    var isFull: Bool { changes >= Self.mostChanges || entries >= Self.mostEntries }

    /// The containers with the first entry of each that is not worked.
    var first: [ContainerKey: LogPosition] { lines.mapValues(\.judged) }

    /// Whether entries of a container have to wait.
    func holds(_ container: ContainerKey) -> Bool {
        !lines.isEmpty && lines[container] != nil
    }

    /// A change is judged beside the log.
    mutating func judge(_ entry: FollowedEntry) {
        if lines.isEmpty { handedOver = 0 }
        lines[entry.container, default: Line(judged: entry.position)].judged = entry.position
        changes += 1
    }

    /// An entry waits for those of its container that were put off.
    mutating func hold(_ entry: FollowedEntry) {
        lines[entry.container]?.waiting.append(entry)
        entries += 1
        if entry.isChange { changes += 1 }
    }

    /// So much was handed over.
    mutating func noteHandedOver(_ count: Int = 1) {
        handedOver += count
    }

    /// The change of a container that was judged is worked.
    mutating func finish(_ container: ContainerKey) {
        if lines[container] != nil { changes -= 1 }
    }

    /// The entry of a container that comes next; `nil` if none waits, and then the log goes on with
    /// the container.
    mutating func next(of container: ContainerKey) -> FollowedEntry? {
        guard var line = lines[container], !line.waiting.isEmpty else {
            lines[container] = nil
            return nil
        }
        let next = line.waiting.removeFirst()
        entries -= 1
        if next.isChange { changes -= 1 }
        line.judged = next.position
        lines[container] = line
        return next
    }
}

extension FollowedEntry {
    var isChange: Bool {
        if case .change = body { true } else { false }
    }
}
