import DequeModule
import RelayModel

/// A request that waits for a place on a connection.
struct WaitingPush: Sendable {
    var request: PushRequest
    /// The number of times that a connection gave it back unwritten.
    var moves = 0
}

/// The waiting requests of one pool.
///
/// Visible pushes go before background pushes, and containers take turns.
///
/// Background pushes are not starved: after sixteen visible pushes a background push goes.
struct PushQueue: Sendable {
    private var visible = FairLane()
    private var background = FairLane()
    private var visibleInARow = 0

    /// The number of visible pushes that may go before a waiting background push.
    static let visibleRun = 16

    var count: Int { visible.count + background.count }
    var isEmpty: Bool { visible.count == 0 && background.count == 0 }
    /// Whether a request waits whose container is not held.
    var isReady: Bool { visible.isReady || background.isReady }

    mutating func append(_ waiting: WaitingPush) {
        switch waiting.request.notification.pushType {
        case .alert: visible.append(waiting)
        case .background: background.append(waiting)
        }
    }

    /// Puts back a request that a connection did not write.
    ///
    /// It goes before the others of its container.
    mutating func prepend(_ waiting: WaitingPush) {
        switch waiting.request.notification.pushType {
        case .alert: visible.prepend(waiting)
        case .background: background.prepend(waiting)
        }
    }

    /// Takes out the next request.
    ///
    /// A container for which `holds` returns `true` is skipped, and its requests keep their places
    /// until ``release(_:)``.
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

    /// Lets a container that was held take turns again.
    mutating func release(_ container: ContainerKey) {
        visible.release(container)
        background.release(container)
    }

    /// Takes out all requests of a container.
    mutating func remove(_ container: ContainerKey) -> [WaitingPush] {
        visible.remove(container) + background.remove(container)
    }

    /// Takes out all requests.
    mutating func removeAll() -> [WaitingPush] {
        var all: [WaitingPush] = []
        all.reserveCapacity(count)
        visible.releaseAll()
        background.releaseAll()
        while let next = popFirst() { all.append(next) }
        return all
    }
}

/// The requests of one kind in a queue: a line for each container, with the containers taking
/// turns.
private struct FairLane: Sendable {
    private var lines: [Deque<WaitingPush>] = []
    private var places: [ContainerKey: Int] = [:]
    private var turns: Deque<Int> = []
    /// The lines that were skipped because their containers were held.
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
