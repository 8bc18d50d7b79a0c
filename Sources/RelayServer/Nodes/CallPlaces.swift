import Synchronization

/// Limits how many calls for one store a relay handles.
///
/// So a store without an owner, or with an owner that does not answer, does not take the
/// connections that calls for other stores need. Concurrency: a lock protects the two counts.
final class CallPlaces: Sendable {
    /// The maximum counts.
    struct Bounds: Sendable, Hashable {
        /// Calls whose answer has not begun, including those that are held on purpose.
        let unanswered: Int
        /// Those of them that wait for an owner of the store.
        let waiting: Int

        /// Creates limits from the maximum number of connections: a half and a quarter of them.
        init(connections: Int) {
            unanswered = max(16, connections / 2)
            waiting = max(8, connections / 4)
        }
    }

    private let bounds: Bounds
    private let counts = Mutex((unanswered: 0, waiting: 0))

    init(_ bounds: Bounds) { self.bounds = bounds }

    /// Takes a place for a call; returns whether there was one.
    func take() -> Bool {
        counts.withLock { counts in
            guard counts.unanswered < bounds.unanswered else { return false }
            counts.unanswered += 1
            return true
        }
    }

    func giveBack() { counts.withLock { $0.unanswered -= 1 } }

    /// Lets a call wait; returns whether it may.
    func beginWaiting() -> Bool {
        counts.withLock { counts in
            guard counts.waiting < bounds.waiting else { return false }
            counts.waiting += 1
            return true
        }
    }

    func endWaiting() { counts.withLock { $0.waiting -= 1 } }
}

/// The places of one call; they belong to its connection's event loop.
struct CallPlace {
    private let places: CallPlaces?
    private var isTaken = false
    private var isWaiting = false

    /// Creates the places of a call, without limits if `places` is `nil`.
    init(_ places: CallPlaces?) { self.places = places }

    /// Takes a place if the call has none; returns whether it has one now.
    mutating func take() -> Bool {
        guard let places, !isTaken else { return true }
        isTaken = places.take()
        return isTaken
    }

    /// Begins to wait for an owner; returns whether the call may.
    mutating func wait() -> Bool {
        guard let places, !isWaiting else { return true }
        isWaiting = places.beginWaiting()
        return isWaiting
    }

    /// Ends the waiting.
    mutating func goOn() {
        if isWaiting { places?.endWaiting() }
        isWaiting = false
    }

    /// Returns the places, because the answer has begun or the call is over.
    mutating func giveBack() {
        goOn()
        if isTaken { places?.giveBack() }
        isTaken = false
    }
}
