import RelayModel
import Storage

/// The requests that wait for the writer: a line for each container and one for the relay itself,
/// which take turns.
struct WriteLines: Sendable {
    /// The number of changes of one line before the next line has its turn.
    ///
    /// Eight turns fill a commit of the usual size.
    static let changesPerTurn = 32

    private struct Line: Sendable {
        var requests: [WriteRequest] = []
        var changes = 0
        var bytes = 0

        /// Whether the next request is a large one.
        var isLarge: Bool { requests.first?.isLarge ?? false }
    }

    /// The lines by container; `nil` is the relay's own line.
    private var lines: [ContainerKey?: Line] = [:]
    /// The keys of the lines that are not empty, the next one first.
    private var turns: [ContainerKey?] = []
    /// The number of waiting requests.
    private(set) var count = 0
    /// The number of changes in them.
    private(set) var changes = 0
    /// The approximate number of bytes in them.
    private(set) var bytes = 0
    /// The number of commits in a row that have passed over large requests.
    private var passedOver = 0

    /// Whether no request waits.
    var isEmpty: Bool { count == 0 }

    /// All waiting requests, each line in its order.
    var all: [WriteRequest] { lines.values.flatMap(\.requests) }

    /// Appends a request to its line.
    mutating func append(_ request: WriteRequest) {
        if lines[request.container] == nil { turns.append(request.container) }
        lines[request.container, default: Line()].requests.append(request)
        lines[request.container]?.changes += request.changes
        lines[request.container]?.bytes += request.bytes
        count += 1
        changes += request.changes
        bytes += request.bytes
    }

    /// Returns what waits for a container, or `nil` if no other container has waiting requests.
    func besideOthers(_ container: ContainerKey?) -> (changes: Int, bytes: Int)? {
        let isBesideOthers = lines.keys.contains { $0 != nil && $0 != container }
        guard isBesideOthers else { return nil }
        return lines[container].map { ($0.changes, $0.bytes) } ?? (0, 0)
    }

    /// Removes and returns the requests for one commit: line by line, each in its order, until
    /// there are `wanted` changes or nothing waits.
    mutating func take(changes wanted: Int) -> [WriteRequest] {
        take(changes: wanted) { _ in false }
    }

    /// Takes requests as ``take(changes:)`` does, but leaves lines that `isPassedOver` in their
    /// places, which are then before all others.
    private mutating func take(
        changes wanted: Int, passingOver isPassedOver: (Line) -> Bool
    ) -> [WriteRequest] {
        var batch: [WriteRequest] = []
        var passed: [ContainerKey?] = []
        var taken = 0
        while taken < wanted, !turns.isEmpty {
            let party = turns.removeFirst()
            // A reference to the line would make the turn copy all of its requests.
            guard let isPassed = lines[party].map(isPassedOver) else { continue }
            if isPassed {
                passed.append(party)
            } else {
                let (requests, changes) = takeTurn(of: party, changes: wanted - taken)
                batch += requests
                taken += changes
            }
        }
        turns = passed + turns
        return batch
    }

    /// Removes and returns the requests for one commit, as ``take(changes:)`` does, but either
    /// small or large ones.
    ///
    /// A small request waits for one large commit at most, because both kinds take turns, and large
    /// requests of different lines never share a commit. With `smallFirst`, small requests come
    /// first even if they had the last turn, but not if they also had the one before. Otherwise
    /// large requests would wait for as long as a checkpoint follows each commit of small ones.
    mutating func takeApart(changes wanted: Int, smallFirst: Bool = false) -> [WriteRequest] {
        let large = turns.firstIndex { lines[$0]?.isLarge == true }
        if let large, !hasSmall || passedOver >= (smallFirst ? 2 : 1) {
            passedOver = 0
            return takeTurn(of: turns.remove(at: large), changes: wanted).requests
        }
        let batch = take(changes: wanted, passingOver: \.isLarge)
        passedOver = lines.values.contains(where: \.isLarge) ? passedOver + 1 : 0
        return batch
    }

    /// Whether small requests wait.
    var hasSmall: Bool { lines.values.contains { !$0.isLarge } }

    /// Removes and returns the first requests of a line that is not among the turns: at most
    /// `wanted` changes, and a turn's, and only small or only large ones.
    private mutating func takeTurn(
        of party: ContainerKey?, changes wanted: Int
    ) -> (requests: [WriteRequest], changes: Int) {
        guard var line = lines.removeValue(forKey: party) else { return ([], 0) }
        let turn = min(wanted, Self.changesPerTurn)
        let isLarge = line.isLarge
        var had = 0
        var end = 0
        while had < turn, end < line.requests.count, line.requests[end].isLarge == isLarge {
            had += line.requests[end].changes
            bytes -= line.requests[end].bytes
            line.bytes -= line.requests[end].bytes
            end += 1
        }
        let requests = Array(line.requests[..<end])
        line.requests.removeFirst(end)
        line.changes -= had
        count -= end
        changes -= had
        if !line.requests.isEmpty {
            lines[party] = line
            turns.append(party)
        }
        return (requests, had)
    }

    /// Puts requests that were taken last, and not run, back at the front of their lines.
    ///
    /// The line of `party`, which filled the commit, has its next turn after all others.
    mutating func takeBack(_ requests: ArraySlice<WriteRequest>, after party: ContainerKey?) {
        var returned: [ContainerKey?: [WriteRequest]] = [:]
        var order: [ContainerKey?] = []
        for request in requests {
            if returned[request.container] == nil { order.append(request.container) }
            returned[request.container, default: []].append(request)
            changes += request.changes
            bytes += request.bytes
        }
        count += requests.count
        for (party, requests) in returned {
            var line = lines[party] ?? Line()
            line.requests.insert(contentsOf: requests, at: 0)
            line.changes += requests.reduce(0) { $0 + $1.changes }
            line.bytes += requests.reduce(0) { $0 + $1.bytes }
            lines[party] = line
        }
        let others = turns.filter { returned[$0] == nil && $0 != party }
        turns = order.filter { $0 != party } + others
        if lines[party] != nil { turns.append(party) }
    }
}
