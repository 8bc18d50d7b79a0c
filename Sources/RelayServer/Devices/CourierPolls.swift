package import RelayModel
import ServiceLifecycle
package import Storage
import Synchronization

/// Holds the polls of web couriers until there is a notification for them.
///
/// A notification is taken durably before it is sent, so that none is received twice. It is put
/// back if it could not be sent. Several polls of one courier are woken one after the other, the
/// newest first, because an older one may be a connection whose client has gone.
///
/// Concurrency: a lock protects the polls; no other code is called while it is held.
package final class CourierPolls: Sendable {
    /// The settings of polls.
    package struct Settings: Sendable, Hashable {
        /// How long a poll is held before it is answered without a notification.
        ///
        /// Clients give up after 30 seconds (MistKit).
        package var hold: Duration = .seconds(25)
        /// The maximum number of polls that are held, of all couriers.
        package var polls = 1000
        /// How long a poll is held at least before it makes room for another one.
        package var leastHold: Duration = .seconds(2)
        /// The delay of the refusal for an unknown courier.
        ///
        /// CloudKit JS polls again after 10 ms, whatever the answer is.
        package var refusalDelay: Duration = .seconds(2)

        package init() {}
    }

    private enum Event: Sendable {
        case rung
        case released
    }

    /// One waiting poll.
    private struct Poll: Sendable {
        let number: UInt64
        let courier: DeviceToken
        let party: CourierParty?
        let age: Stopwatch
        let events: AsyncStream<Event>
        let continuation: AsyncStream<Event>.Continuation
    }

    private struct State {
        /// The polls of each courier, ascending by number.
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

    /// The number of waiting polls.
    package var waiting: Int { state.withLock { $0.count } }

    /// Wakes a poll of each of these couriers.
    package func ring(_ couriers: some Sequence<DeviceToken>) {
        for courier in couriers { ring(courier) }
    }

    /// Waits for a notification for the courier and takes it; `nil` after the hold.
    ///
    /// If all places are taken, only the parties with the most polls have to make room or wait:
    /// first among containers, and then among the users of one.
    ///
    /// - Throws: The error 429 if too many polls wait; ``Storage/StorageError``;
    ///   `CancellationError` if the task was cancelled, and then no notification is taken.
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

    /// Puts back a notification that could not be sent.
    package func putBack(
        _ notification: TakenNotification, of courier: DeviceToken
    ) async throws {
        try await queue.putBack(notification)
        ring(courier)
    }

    /// Delays the refusal of a poll for an unknown courier, if not too many are delayed already.
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
        // The stream stays short: a poll is rung at most twice before it looks, and released at
        // most three times.
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

    /// Releases a waiting poll, so that one of `party` can wait.
    ///
    /// It is the poll that has waited longest of the user with the most polls in the container with
    /// the most. A party with fewer polls need not wait for the end of that poll's least hold.
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
            throw APIError(.throttled, "too many polls of web couriers are open", retryAfter: 5)
        }
        oldest.continuation.yield(.released)
        Self.remove(oldest, from: &state)
    }

    /// Returns the most frequent key and its number; among equally frequent ones, any.
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
        // There may be more notifications than this poll took, or it took none because it ended.
        if wasRung { ring(poll.courier) }
    }

    private static func remove(_ poll: Poll, from state: inout State) {
        guard let index = state.polls[poll.courier]?.firstIndex(where: { $0.number == poll.number })
        else { return }
        state.polls[poll.courier]?.remove(at: index)
        state.count -= 1
        if state.polls[poll.courier]?.isEmpty == true { state.polls[poll.courier] = nil }
    }

    /// Wakes the courier's newest poll that is not awake.
    private func ring(_ courier: DeviceToken) {
        state.withLock { state in
            let polls = state.polls[courier] ?? []
            guard let poll = polls.last(where: { !state.rung.contains($0.number) }) else { return }
            state.rung.insert(poll.number)
            poll.continuation.yield(.rung)
        }
    }
}
