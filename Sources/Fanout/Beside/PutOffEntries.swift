import RelayModel
import Storage

/// The entries that are not worked in the log's turn: dear changes, and the later entries of their
/// containers.
///
/// The set of active subscriptions at a position must be exact for each container. So while a
/// change of a container is judged beside the log, all later entries of that container wait in
/// order.
struct PutOffEntries {
    private struct Line {
        /// The position of the change that is judged, and its size in bytes.
        var judged: LogPosition
        var judgedBytes: Int
        private var waiting: [FollowedEntry] = []
        /// The number of entries at the front of `waiting` that have been taken.
        private var taken = 0

        init(_ entry: FollowedEntry) {
            judged = entry.position
            judgedBytes = entry.memoryBytes
        }

        mutating func hold(_ entry: FollowedEntry) {
            waiting.append(entry)
        }

        /// Takes the next waiting entry.
        ///
        /// Returns `nil` if none waits.
        mutating func takeNext() -> FollowedEntry? {
            guard taken < waiting.count else { return nil }
            let next = waiting[taken]
            taken += 1
            if taken >= 64, taken * 2 > waiting.count {
                waiting.removeFirst(taken)
                taken = 0
            }
            judged = next.position
            judgedBytes = 0
            return next
        }
    }

    /// The maximum number of entries that wait behind changes that were put off.
    private static let mostEntries = 1024
    /// The maximum number of bytes of the entries that are put off or wait.
    private static let mostBytes = 16 * 1024 * 1024

    /// The maximum number of changes of all containers that may be put off.
    ///
    /// Beyond it, the log waits.
    private let mostChanges: Int
    private var lines: [ContainerKey: Line] = [:]
    private var entries = 0
    private var changes = 0
    private var bytes = 0
    /// The number of items handed over since the first change was put off, including the changes
    /// that were put off.
    private(set) var handedOver = 0
    /// The number of changes that were worked after they had been put off, since the start.
    private(set) var worked: UInt64 = 0

    /// Creates an empty set that takes at most `most` changes.
    init(most: Int) {
        mostChanges = most
    }

    var isEmpty: Bool { lines.isEmpty }

    /// Whether one of the maximums is reached.
    var isFull: Bool {
        !lines.isEmpty
            && (changes >= mostChanges || entries >= Self.mostEntries || bytes >= Self.mostBytes)
    }

    /// The position of the first entry that is not worked yet, by container.
    var first: [ContainerKey: LogPosition] { lines.mapValues(\.judged) }

    /// Whether entries of a container must wait.
    func holds(_ container: ContainerKey) -> Bool {
        !lines.isEmpty && lines[container] != nil
    }

    /// Notes that a change is now judged beside the log.
    mutating func judge(_ entry: FollowedEntry) {
        if lines.isEmpty { handedOver = 0 }
        if lines[entry.container] == nil {
            lines[entry.container] = Line(entry)
        } else {
            lines[entry.container]?.judged = entry.position
            lines[entry.container]?.judgedBytes = entry.memoryBytes
        }
        changes += 1
        bytes += entry.memoryBytes
    }

    /// Adds an entry that waits for earlier entries of its container.
    mutating func hold(_ entry: FollowedEntry) {
        lines[entry.container]?.hold(entry)
        entries += 1
        bytes += entry.memoryBytes
        if entry.isChange { changes += 1 }
    }

    /// Counts items that were handed over.
    mutating func noteHandedOver(_ count: Int = 1) {
        handedOver += count
    }

    /// Notes that the judged change of a container has been worked.
    mutating func finish(_ container: ContainerKey) {
        guard let line = lines[container] else { return }
        changes -= 1
        bytes -= line.judgedBytes
        worked += 1
    }

    /// Takes the next waiting entry of a container.
    ///
    /// If none waits, returns `nil` and ends the container's line, so its later entries are worked
    /// in the log's turn again.
    mutating func next(of container: ContainerKey) -> FollowedEntry? {
        guard let next = lines[container]?.takeNext() else {
            lines[container] = nil
            return nil
        }
        entries -= 1
        bytes -= next.memoryBytes
        if next.isChange { changes -= 1 }
        return next
    }
}

extension FollowedEntry {
    var isChange: Bool {
        if case .change = body { true } else { false }
    }
}
