import DequeModule
import RelayModel

/// A request that waits for a place on a connection.
struct WaitingPush: Sendable {
    var request: PushRequest
    /// How often a connection gave it back unwritten.
    var moves = 0
}

/// The requests of one pool that wait: visible before background, containers in turns.
///
/// Background pushes are not starved: after sixteen visible ones a background one goes.
struct PushQueue: Sendable {
    private var visible = FairLane()
    private var background = FairLane()
    private var visibleInARow = 0

    /// How many visible ones may go before a background one that waits.
    static let visibleRun = 16

    var count: Int { visible.count + background.count }
    var isEmpty: Bool { visible.count == 0 && background.count == 0 }
    /// Whether something waits whose container is not held.
    var isReady: Bool { visible.isReady || background.isReady }

    mutating func append(_ waiting: WaitingPush) {
        switch waiting.request.notification.pushType {
        case .alert: visible.append(waiting)
        case .background: background.append(waiting)
        }
    }

    /// Puts back what a connection did not write; it goes before its container's others.
    mutating func prepend(_ waiting: WaitingPush) {
        switch waiting.request.notification.pushType {
        case .alert: visible.prepend(waiting)
        case .background: background.prepend(waiting)
        }
    }

    /// Takes out the next one; a container of which `holds` says so is passed over, and keeps its
    /// place until ``release(_:)``.
    mutating func popFirst(unless holds: (ContainerKey) -> Bool = { _ in false }) -> WaitingPush? {
        let isBackgroundsTurn = visibleInARow >= Self.visibleRun || !visible.isReady
        if isBackgroundsTurn, let first = background.popFirst(unless: holds) {
            visibleInARow = 0
            return first
        }
        guard let first = visible.popFirst(unless: holds) else {
            return isBackgroundsTurn ? nil : background.popFirst(unless: holds)
        }
        visibleInARow = background.isReady ? visibleInARow + 1 : 0
        return first
    }

    /// Lets a container that was held take its turns again.
    mutating func release(_ container: ContainerKey) {
        visible.release(container)
        background.release(container)
    }

    /// Takes a container's requests out.
    mutating func remove(_ container: ContainerKey) -> [WaitingPush] {
        visible.remove(container) + background.remove(container)
    }

    /// Takes everything out.
    mutating func removeAll() -> [WaitingPush] {
        var all: [WaitingPush] = []
        all.reserveCapacity(count)
        visible.releaseAll()
        background.releaseAll()
        while let next = popFirst() { all.append(next) }
        return all
    }
}

/// One urgency of a queue: a line for each container, and the containers in turns.
private struct FairLane: Sendable {
    private var lines: [Deque<WaitingPush>] = []
    private var places: [ContainerKey: Int] = [:]
    private var turns: Deque<Int> = []
    /// Lines that were passed over, because their containers were held.
    private var held: Set<Int> = []
    private(set) var count = 0

    var isReady: Bool { !turns.isEmpty }

    mutating func append(_ waiting: WaitingPush) {
        let place = place(of: waiting.request.container)
        if lines[place].isEmpty { turns.append(place) }
        lines[place].append(waiting)
        count += 1
    }

    mutating func prepend(_ waiting: WaitingPush) {
        let place = place(of: waiting.request.container)
        if lines[place].isEmpty { turns.prepend(place) }
        lines[place].prepend(waiting)
        count += 1
    }

    mutating func popFirst(unless holds: (ContainerKey) -> Bool) -> WaitingPush? {
        while let place = turns.popFirst(), let next = lines[place].first {
            if holds(next.request.container) {
                held.insert(place)
                continue
            }
            lines[place].removeFirst()
            if !lines[place].isEmpty { turns.append(place) }
            count -= 1
            return next
        }
        return nil
    }

    mutating func release(_ container: ContainerKey) {
        guard !held.isEmpty, let place = places[container], held.remove(place) != nil else {
            return
        }
        turns.append(place)
    }

    mutating func releaseAll() {
        turns.append(contentsOf: held.sorted())
        held.removeAll()
    }

    mutating func remove(_ container: ContainerKey) -> [WaitingPush] {
        guard let place = places[container], !lines[place].isEmpty else { return [] }
        let line = Array(lines[place])
        lines[place].removeAll()
        turns.removeAll { $0 == place }
        held.remove(place)
        count -= line.count
        return line
    }

    private mutating func place(of container: ContainerKey) -> Int {
        if let place = places[container] { return place }
        places[container] = lines.count
        lines.append([])
        return lines.count - 1
    }
}
