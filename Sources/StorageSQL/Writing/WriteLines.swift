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
        var batch: [WriteRequest] = []
        var taken = 0
        while taken < wanted, !turns.isEmpty {
            let party = turns.removeFirst()
            guard var line = lines.removeValue(forKey: party) else { continue }
            let turn = min(wanted - taken, Self.changesPerTurn)
            var had = 0
            var end = 0
            while had < turn, end < line.requests.count {
                had += line.requests[end].changes
                bytes -= line.requests[end].bytes
                line.bytes -= line.requests[end].bytes
                end += 1
            }
            batch.append(contentsOf: line.requests[..<end])
            line.requests.removeFirst(end)
            line.changes -= had
            taken += had
            count -= end
            changes -= had
            if !line.requests.isEmpty {
                lines[party] = line
                turns.append(party)
            }
        }
        return batch
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
