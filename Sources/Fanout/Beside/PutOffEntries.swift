import RelayModel
import Storage

/// The entries that are not worked in the log's turn: dear changes, and what came of their
/// containers after them.
///
/// What is active at a position is exact for each container: of one of which a change is judged
/// beside the log, everything waits in its order.
struct PutOffEntries {
    private struct Line {
        /// The place of the change that is judged, and its bytes.
        var judged: LogPosition
        var judgedBytes: Int
        private var waiting: [FollowedEntry] = []
        /// How many of these have been taken.
        private var taken = 0

        init(_ entry: FollowedEntry) {
            judged = entry.position
            judgedBytes = entry.memoryBytes
        }

        mutating func hold(_ entry: FollowedEntry) {
            waiting.append(entry)
        }

        /// The entry that comes next; `nil` if none waits.
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

    /// Entries that may wait for them.
    private static let mostEntries = 1024
    /// Bytes that changes may have that are put off.
    private static let mostBytes = 16 * 1024 * 1024

    /// Changes of all containers that may be put off; then the log waits.
    private let mostChanges: Int
    private var lines: [ContainerKey: Line] = [:]
    private var entries = 0
    private var changes = 0
    private var bytes = 0
    /// What was handed over since the first of them was put off, those themselves too.
    private(set) var handedOver = 0
    /// Changes that were worked after they were put off, since the start.
    private(set) var worked: UInt64 = 0

    /// None; as many changes may be put off as `most` says.
    init(most: Int) {
        mostChanges = most
    }

    /// Whether there are none.
    var isEmpty: Bool { lines.isEmpty }

    /// Whether as many are put off as may be.
    var isFull: Bool {
        !lines.isEmpty
            && (changes >= mostChanges || entries >= Self.mostEntries || bytes >= Self.mostBytes)
    }

    /// The containers with the first entry of each that is not worked.
    var first: [ContainerKey: LogPosition] { lines.mapValues(\.judged) }

    /// Whether entries of a container have to wait.
    func holds(_ container: ContainerKey) -> Bool {
        !lines.isEmpty && lines[container] != nil
    }

    /// A change is judged beside the log.
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

    /// An entry waits for those of its container that were put off.
    mutating func hold(_ entry: FollowedEntry) {
        lines[entry.container]?.hold(entry)
        entries += 1
        bytes += entry.memoryBytes
        if entry.isChange { changes += 1 }
    }

    /// So much was handed over.
    mutating func noteHandedOver(_ count: Int = 1) {
        handedOver += count
    }

    /// The change of a container that was judged is worked.
    mutating func finish(_ container: ContainerKey) {
        guard let line = lines[container] else { return }
        changes -= 1
        bytes -= line.judgedBytes
        worked += 1
    }

    /// The entry of a container that comes next; `nil` if none waits, and then the log goes on with
    /// the container.
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
