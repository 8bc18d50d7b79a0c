import Delivery
import RelayModel
import Synchronization

/// Tracks which devices are connected, and which pushes wait for proof from their connections
/// ([decision 77](docs/decisions/0077-seen-over-a-connection.md)).
///
/// A connection counts for a device by the user whose token it has shown and the device that its
/// `hello` names. So a client cannot hold back another user's pushes. Concurrency: a lock around
/// the tables; no other code is called while it is held.
final class LivePresence: DevicePresence {
    /// The number of deliveries that may wait for one device.
    static let mostForDevice = 256
    /// The number of deliveries that may wait in all.
    static let most = 16_384
    /// The age at which an abandoned wait is removed; its delivery has ended in another way.
    private static let oblivion = Duration.seconds(60)
    /// The interval between searches for abandoned waits, because a search visits all waits.
    private static let oblivionPause = Duration.seconds(1)

    /// The client behind a device; a page may have several device tokens and is still one client.
    struct Place: Hashable, Sendable {
        private let container: ContainerKey
        private let owner: UserID
        /// The bytes of the client's name: two Unicode spellings of one letter are two clients.
        private let client: [UInt8]

        init(_ container: ContainerKey, _ owner: UserID, _ device: DeviceID) {
            self.container = container
            self.owner = owner
            client = Array(device.client.utf8)
        }

        init(_ delivery: Delivery) {
            self.init(delivery.container, delivery.owner, delivery.deviceID)
        }
    }

    /// A delivery that a connection is asked about.
    struct Question: Sendable, Hashable {
        let delivery: DeliveryID
        let position: LogPosition
    }

    /// Asks a connection to prove that it was sent changes.
    typealias Ask = @Sendable ([Question]) -> Void

    private struct Wait {
        let place: Place
        let since: Timestamp
        /// The connections that may still prove it; `nil` before they are asked.
        var hopes: Set<UInt64>?
        var isSeen = false
    }

    private struct State {
        var connections: [Place: [UInt64: Ask]] = [:]
        var waits: [DeliveryID: Wait] = [:]
        /// The number of waits for each place.
        var counts: [Place: Int] = [:]
        var decided: [DeliveryID] = []
        /// The time of the last search for abandoned waits.
        var forgot: Timestamp?

        /// Removes abandoned waits, to make room.
        mutating func forget(at now: Timestamp) {
            if let forgot, forgot <= now, now < forgot.advanced(by: oblivionPause) { return }
            forgot = now
            let moment = now.advanced(by: .zero - oblivion)
            for id in waits.filter({ $0.value.since < moment }).keys { _ = end(id) }
        }

        mutating func end(_ delivery: DeliveryID) -> Wait? {
            guard let wait = waits.removeValue(forKey: delivery) else { return nil }
            counts[wait.place, default: 1] -= 1
            if counts[wait.place] == 0 { counts[wait.place] = nil }
            return wait
        }

        /// Notes that one connection will prove nothing; returns whether it was the last that
        /// might.
        mutating func giveUp(_ delivery: DeliveryID, on number: UInt64) -> Bool {
            guard waits[delivery]?.isSeen == false,
                waits[delivery]?.hopes?.remove(number) != nil,
                waits[delivery]?.hopes?.isEmpty == true
            else { return false }
            decided.append(delivery)
            return true
        }
    }

    private let state = Mutex(State())
    private let news = AsyncStream.makeStream(
        of: Void.self, bufferingPolicy: .bufferingNewest(1))

    // MARK: Connections

    /// Adds a connection of a device.
    func enter(_ place: Place, _ number: UInt64, ask: @escaping Ask) {
        state.withLock { $0.connections[place, default: [:]][number] = ask }
    }

    /// Removes a connection, because it is gone or can prove nothing any more.
    func leave(_ place: Place, _ number: UInt64) {
        let isNews = state.withLock { state in
            state.connections[place]?[number] = nil
            if state.connections[place]?.isEmpty == true { state.connections[place] = nil }
            guard state.counts[place] != nil else { return false }
            var isNews = false
            for (id, wait) in state.waits where wait.place == place {
                if state.giveUp(id, on: number) { isNews = true }
            }
            return isNews
        }
        if isNews { news.continuation.yield() }
    }

    /// Notes that a connection was sent the changes of these deliveries, and has since proven that
    /// it is alive.
    func see(_ deliveries: some Sequence<DeliveryID>) {
        state.withLock { state in
            for id in deliveries where state.waits[id]?.isSeen == false {
                state.waits[id]?.isSeen = true
                state.decided.append(id)
            }
        }
        news.continuation.yield()
    }

    /// Notes that a connection will not be sent the changes of these deliveries.
    func giveUp(_ deliveries: some Sequence<DeliveryID>, on number: UInt64) {
        let isNews = state.withLock { state in
            var isNews = false
            for id in deliveries where state.giveUp(id, on: number) { isNews = true }
            return isNews
        }
        if isNews { news.continuation.yield() }
    }

    // MARK: Deliveries

    func awaitDevice(of delivery: Delivery, at now: Timestamp) -> Bool {
        let place = Place(delivery)
        return state.withLock { state in
            guard state.connections[place] != nil else { return false }
            if state.counts[place, default: 0] >= Self.mostForDevice
                || state.waits.count >= Self.most
            {
                state.forget(at: now)
            }
            guard state.counts[place, default: 0] < Self.mostForDevice,
                state.waits.count < Self.most, state.waits[delivery.id] == nil
            else { return false }
            state.waits[delivery.id] = Wait(place: place, since: now)
            state.counts[place, default: 0] += 1
            return true
        }
    }

    func endWait(for delivery: DeliveryID) -> Bool {
        state.withLock { $0.end(delivery)?.isSeen == true }
    }

    func watch(_ deliveries: [Delivery]) {
        let (asks, isNews) = state.withLock { state in
            var questions: [Place: [Question]] = [:]
            var isNews = false
            for delivery in deliveries {
                guard let place = state.waits[delivery.id]?.place else { continue }
                let connections = state.connections[place] ?? [:]
                state.waits[delivery.id]?.hopes = Set(connections.keys)
                guard !connections.isEmpty else {
                    // The connection went away while the delivery was being stored.
                    state.decided.append(delivery.id)
                    isNews = true
                    continue
                }
                questions[place, default: []].append(
                    Question(delivery: delivery.id, position: delivery.ordinal.position))
            }
            let asks = questions.flatMap { place, questions in
                (state.connections[place] ?? [:]).values.map { ($0, questions) }
            }
            return (asks, isNews)
        }
        if isNews { news.continuation.yield() }
        for (ask, questions) in asks { ask(questions) }
    }

    func decided() async -> [DeliveryID] {
        var iterator = news.stream.makeAsyncIterator()
        while !Task.isCancelled {
            let decided = state.withLock { state in
                defer { state.decided = [] }
                return state.decided
            }
            if !decided.isEmpty { return decided }
            guard await iterator.next() != nil else { return [] }
        }
        return []
    }
}
