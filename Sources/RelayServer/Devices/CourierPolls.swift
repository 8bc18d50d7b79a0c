package import RelayModel
import ServiceLifecycle
package import Storage
import Synchronization

/// Where polls of web couriers wait until there is something for them.
///
/// A notification is taken durably before it is answered, so that nobody gets it twice, and put
/// back if it turns out that it could not be handed over. Concurrency: a lock around the polls;
/// nothing is called out while it is held. Several polls of one courier wake one after the other,
/// the newest first: an older one may be a connection that nobody listens to any more.
package final class CourierPolls: Sendable {
    /// What can be set.
    package struct Settings: Sendable, Hashable {
        /// How long a poll is held before it is answered with nothing.
        ///
        /// Clients give up after 30 seconds (MistKit).
        package var hold: Duration = .seconds(25)
        /// Polls that are held at a time, of all couriers.
        package var polls = 1000
        /// How long a poll is held at least before it makes room for another one.
        package var leastHold: Duration = .seconds(2)
        /// How long a poll of an unknown courier waits for its refusal: CloudKit JS asks again
        /// after 10 ms, whatever the answer.
        package var refusalDelay: Duration = .seconds(2)

        package init() {}
    }

    private enum Event: Sendable {
        case rung
        case released
    }

    /// One poll that waits.
    private struct Poll: Sendable {
        let number: UInt64
        let courier: DeviceToken
        let party: CourierParty?
        let age: Stopwatch
        let events: AsyncStream<Event>
        let continuation: AsyncStream<Event>.Continuation
    }

    private struct State {
        /// Ascending by number.
        var polls: [DeviceToken: [Poll]] = [:]
        var rung: Set<UInt64> = []
        var count = 0
        var nextNumber: UInt64 = 0
        var strangers = 0
    }

    private let state = Mutex(State())
    private let queue: any CourierQueue
    private let settings: Settings
    private let clock: any Clock<Duration>
    private let now: @Sendable () -> Timestamp

    package init(
        queue: any CourierQueue, settings: Settings = Settings(), clock: any Clock<Duration>,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.queue = queue
        self.settings = settings
        self.clock = clock
        self.now = now
    }

    /// How many polls wait.
    package var waiting: Int { state.withLock { $0.count } }

    /// Wakes a poll of each of these couriers.
    package func ring(_ couriers: some Sequence<DeviceToken>) {
        for courier in couriers { ring(courier) }
    }

    /// Waits until there is a notification for the courier, and takes it; `nil` after the hold.
    ///
    /// Where all places are taken, those who have most of them wait for theirs, and nobody else:
    /// containers, and in one its users.
    ///
    /// - Throws: 429 if too many polls wait; ``Storage/StorageError``; `CancellationError` if the
    ///   task was cancelled, with nothing taken.
    package func next(
        of courier: DeviceToken, for party: CourierParty? = nil
    ) async throws -> TakenNotification? {
        let poll = try enter(courier, party)
        defer { leave(poll) }
        let taken = try await withGracefulShutdownHandler {
            try await wait(poll)
        } onGracefulShutdown: {
            poll.continuation.yield(.released)
        }
        if let taken, Task.isCancelled {
            try await putBack(taken, of: courier)
            throw CancellationError()
        }
        return taken
    }

    /// Puts back what could not be handed over.
    package func putBack(
        _ notification: TakenNotification, of courier: DeviceToken
    ) async throws {
        try await queue.putBack(notification)
        ring(courier)
    }

    /// Lets whoever polls an unknown courier wait for the refusal, as far as there is room.
    package func delayRefusal() async throws {
        let isWaiting = state.withLock { state in
            guard state.strangers < 256 else { return false }
            state.strangers += 1
            return true
        }
        guard isWaiting else { return }
        defer { state.withLock { $0.strangers -= 1 } }
        try await cancelWhenGracefulShutdown { [clock, settings] in
            try await clock.sleep(for: settings.refusalDelay)
        }
    }

    // MARK: Waiting

    private func wait(_ poll: Poll) async throws -> TakenNotification? {
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { [clock, settings] in
                try? await clock.sleep(for: settings.hold)
                poll.continuation.yield(.released)
            }
            var events = poll.events.makeAsyncIterator()
            while true {
                if let taken = try await queue.takeNotification(of: poll.courier, at: now()) {
                    return taken
                }
                state.withLock { _ = $0.rung.remove(poll.number) }
                guard case .rung? = await events.next() else { return nil }
            }
        }
    }

    private func enter(_ courier: DeviceToken, _ party: CourierParty?) throws -> Poll {
        // A poll is rung at most twice before it looks, and released by three at most.
        let (events, continuation) = AsyncStream.makeStream(of: Event.self)
        let age = clock.measureStart()
        return try state.withLock { state in
            if state.count >= settings.polls { try release(for: party, in: &state) }
            let poll = Poll(
                number: state.nextNumber, courier: courier, party: party, age: age, events: events,
                continuation: continuation)
            state.nextNumber += 1
            state.count += 1
            state.polls[courier, default: []].append(poll)
            let polls = state.polls[courier] ?? []
            if polls.count > Limits.maximumPollsPerCourier {
                polls.first?.continuation.yield(.released)
            }
            return poll
        }
    }

    /// Answers a poll with nothing, so that one of `party` can wait: of the container that has most
    /// of them, and in it of the user who has most, the one that waits the longest.
    ///
    /// Whoever has fewer is not made to wait for the end of its least hold.
    private func release(for party: CourierParty?, in state: inout State) throws {
        let all = Array(state.polls.values.joined())
        let container = Self.most(all.map { $0.party?.container })
        let those = all.filter { $0.party?.container == container?.key }
        let user = Self.most(those.map { $0.party?.user })
        let oldest = those.filter { $0.party?.user == user?.key }.min { $0.number < $1.number }
        let isOfMost = party?.container == container?.key
        let own =
            isOfMost
            ? those.count { $0.party?.user == party?.user }
            : all.count { $0.party?.container == party?.container }
        let most = isOfMost ? user?.count : container?.count
        let hasFewer = own + 1 < most ?? 0
        guard let oldest, hasFewer || oldest.age.elapsed() >= settings.leastHold else {
            throw APIError(.throttled, "too many polls of couriers are held", retryAfter: 5)
        }
        oldest.continuation.yield(.released)
        Self.remove(oldest, from: &state)
    }

    /// What is there most often, and how often; of those that are there as often, any.
    private static func most<Key: Hashable>(_ keys: [Key]) -> (key: Key, count: Int)? {
        var counts: [Key: Int] = [:]
        for key in keys { counts[key, default: 0] += 1 }
        return counts.max { $0.value < $1.value }.map { ($0.key, $0.value) }
    }

    private func leave(_ poll: Poll) {
        let wasRung = state.withLock { state in
            Self.remove(poll, from: &state)
            return state.rung.remove(poll.number) != nil
        }
        poll.continuation.finish()
        // There may be more than this one took, or it took nothing because it ended.
        if wasRung { ring(poll.courier) }
    }

    private static func remove(_ poll: Poll, from state: inout State) {
        guard let index = state.polls[poll.courier]?.firstIndex(where: { $0.number == poll.number })
        else { return }
        state.polls[poll.courier]?.remove(at: index)
        state.count -= 1
        if state.polls[poll.courier]?.isEmpty == true { state.polls[poll.courier] = nil }
    }

    /// Wakes the newest poll of the courier that is not awake.
    private func ring(_ courier: DeviceToken) {
        state.withLock { state in
            let polls = state.polls[courier] ?? []
            guard let poll = polls.last(where: { !state.rung.contains($0.number) }) else { return }
            state.rung.insert(poll.number)
            poll.continuation.yield(.rung)
        }
    }
}
