import Synchronization

/// Bounds how many calls for one store a relay has, so that a store without an owner, or whose
/// owner says nothing, takes no connections that calls for other stores need.
///
/// Concurrency: a lock around two numbers.
final class CallPlaces: Sendable {
    /// The most of each.
    struct Bounds: Sendable, Hashable {
        /// Calls of which no answer has begun: those that are held long on purpose too.
        let unanswered: Int
        /// Those of them that wait until somebody owns the store.
        let waiting: Int

        /// Shares of the connections that a relay may have: half of them, and a quarter.
        init(connections: Int) {
            unanswered = max(16, connections / 2)
            waiting = max(8, connections / 4)
        }
    }

    private let bounds: Bounds
    private let counts = Mutex((unanswered: 0, waiting: 0))

    init(_ bounds: Bounds) { self.bounds = bounds }

    /// Takes a place for a call; says whether there was one.
    func take() -> Bool {
        counts.withLock { counts in
            guard counts.unanswered < bounds.unanswered else { return false }
            counts.unanswered += 1
            return true
        }
    }

    func giveBack() { counts.withLock { $0.unanswered -= 1 } }

    /// Lets a call wait; says whether it may.
    func beginWaiting() -> Bool {
        counts.withLock { counts in
            guard counts.waiting < bounds.waiting else { return false }
            counts.waiting += 1
            return true
        }
    }

    func endWaiting() { counts.withLock { $0.waiting -= 1 } }
}

/// The places that one call has; on its connection's event loop.
struct CallPlace {
    private let places: CallPlaces?
    private var isTaken = false
    private var isWaiting = false

    /// A call for a store; without bounds where the store is the only one.
    init(_ places: CallPlaces?) { self.places = places }

    /// Whether the call may go on.
    mutating func take() -> Bool {
        guard let places, !isTaken else { return true }
        isTaken = places.take()
        return isTaken
    }

    /// Whether it may wait for an owner.
    mutating func wait() -> Bool {
        guard let places, !isWaiting else { return true }
        isWaiting = places.beginWaiting()
        return isWaiting
    }

    /// It waits no more.
    mutating func goOn() {
        if isWaiting { places?.endWaiting() }
        isWaiting = false
    }

    /// Its answer has begun, or it is over.
    mutating func giveBack() {
        goOn()
        if isTaken { places?.giveBack() }
        isTaken = false
    }
}
