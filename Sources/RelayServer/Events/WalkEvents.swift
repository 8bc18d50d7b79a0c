package import Delivery
package import Fanout
package import RelayModel
import ServiceLifecycle
import Synchronization

/// What happens to changes, kept for a while for whoever listens.
///
/// Of a container to which nobody has listened for a minute nothing is kept, and its changes cost
/// one look at a number. Concurrency: a lock around the rings; nobody is called while it is held.
/// The walk waits for nobody: who listens too slowly is told how many events are missing.
package final class WalkEvents: Sendable {
    /// What can be set.
    package struct Settings: Sendable, Hashable {
        /// How long a call is held at most; commands give up after a minute.
        package var hold: Duration = .seconds(30)
        /// Calls that are held at a time; of one container the half.
        package var listeners = 32
        /// Containers that are listened to at a time; each takes ``bytes`` at most.
        package var containers = 8
        /// Events that are kept of a container.
        package var events = 4096
        /// Bytes that are kept of a container, about.
        package var bytes = 4 * 1024 * 1024
        /// For how long events are kept after the last call.
        package var lease: Duration = .seconds(60)

        package init() {}
    }

    /// A place among the events of a container, as listeners hand it back.
    struct Place: Sendable, Hashable, CustomStringConvertible {
        /// Which time of listening: numbers begin anew with each.
        let stream: String
        let number: UInt64

        init(stream: String, number: UInt64) {
            self.stream = stream
            self.number = number
        }

        /// Reads a place from what ``description`` wrote.
        init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].utf8.count == 16, let number = UInt64(parts[1]) else {
                return nil
            }
            self.init(stream: String(parts[0]), number: number)
        }

        var description: String { "\(stream).\(number)" }
    }

    /// What a listener is told.
    struct Answer: Sendable {
        var events: [(number: UInt64, event: WalkEvent)]
        /// Where to go on.
        var place: Place
        var missed: UInt64
        /// Whether nothing is known of the time before.
        var isRestarted: Bool

        var isWorthSaying: Bool { !events.isEmpty || missed > 0 || isRestarted }
    }

    /// What a listener asks for.
    struct Question: Sendable {
        let container: ContainerKey
        /// The place after which to begin; `nil` means from now on.
        var place: Place?
        var filter = EventFilter()
        var limit = 100
    }

    private struct Stream {
        let id: String
        var ring: EventRing
        var asked: Stopwatch
        var waiters: [UInt64: AsyncStream<Void>.Continuation] = [:]
    }

    private struct State {
        var streams: [ContainerKey: Stream] = [:]
        var listeners = 0
        var lastListener: UInt64 = 0
    }

    private let state = Mutex(State())
    /// How many containers are listened to, for those who look without the lock.
    private let listened = Atomic(0)
    private let settings: Settings
    private let clock: any Clock<Duration>
    private let now: @Sendable () -> Timestamp
    private let randomBytes: @Sendable (Int) -> [UInt8]

    package init(
        settings: Settings = Settings(), clock: any Clock<Duration>,
        now: @escaping @Sendable () -> Timestamp, randomBytes: @escaping @Sendable (Int) -> [UInt8]
    ) {
        self.settings = settings
        self.clock = clock
        self.now = now
        self.randomBytes = randomBytes
    }

    // MARK: Telling

    /// What the follower tells.
    package var watch: ChangeWatch {
        ChangeWatch { [self] container in
            isListened(to: container)
        } tell: { [self] judged in
            let events = WalkEvent.events(of: judged, at: now())
            append(events.map { (judged.container, $0) })
        }
    }

    /// Tells of pushes that are handed over to be sent.
    package func handOver(_ deliveries: [OwedDelivery]) {
        guard listened.load(ordering: .relaxed) > 0, !deliveries.isEmpty else { return }
        let now = now()
        append(deliveries.map { ($0.delivery.container, .push($0.delivery, at: now)) })
    }

    /// What the ledger tells of answers.
    package var answers: AnswerWatch {
        AnswerWatch { [self] in
            listened.load(ordering: .relaxed) > 0
        } tell: { [self] answers in
            append(answers.map { ($0.delivery.container, .answer($0)) })
        }
    }

    private func isListened(to container: ContainerKey) -> Bool {
        guard listened.load(ordering: .relaxed) > 0 else { return false }
        return state.withLock { state in
            forgetAbandoned(&state)
            return state.streams[container] != nil
        }
    }

    private func append(_ events: [(container: ContainerKey, event: WalkEvent)]) {
        let waiters = state.withLock { state in
            var touched: Set<ContainerKey> = []
            for (container, event) in events where state.streams[container] != nil {
                state.streams[container]?.ring.append(event)
                touched.insert(container)
            }
            return touched.flatMap { Array(state.streams[$0]?.waiters.values ?? [:].values) }
        }
        for waiter in waiters { waiter.yield() }
    }

    private func forgetAbandoned(_ state: inout State) {
        for (container, stream) in state.streams
        where stream.waiters.isEmpty && stream.asked.elapsed() > settings.lease {
            state.streams[container] = nil
        }
        listened.store(state.streams.count, ordering: .relaxed)
    }

    // MARK: Listening

    /// Waits until there is something that is wanted, for `hold` at most.
    ///
    /// Without a place it answers at once with one, from which on nothing is missed.
    ///
    /// - Throws: 429 if too many listen.
    func next(_ question: Question, hold: Duration) async throws -> Answer {
        let container = question.container
        let (number, wakes) = try enter(container)
        defer { leave(container, number) }
        var question = question
        var answer = look(question)
        guard !answer.isWorthSaying, question.place != nil, hold > .zero else { return answer }
        let bounded = min(hold, settings.hold)
        return await withTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { [self] in
                // The relay's end releases it too.
                try? await cancelWhenGracefulShutdown { [clock] in
                    try await clock.sleep(for: bounded)
                }
                release(container, number)
            }
            var iterator = wakes.makeAsyncIterator()
            while !answer.isWorthSaying, await iterator.next() != nil {
                question.place = answer.place
                answer = look(question)
            }
            return answer
        }
    }

    private func look(_ question: Question) -> Answer {
        state.withLock { state in
            guard let stream = state.streams[question.container] else {
                preconditionFailure("who listens holds the stream")
            }
            guard let place = question.place else {
                return Answer(
                    events: [], place: Place(stream: stream.id, number: stream.ring.last),
                    missed: 0, isRestarted: false)
            }
            let isSame = place.stream == stream.id
            let page = stream.ring.page(
                after: isSame ? min(place.number, stream.ring.last) : 0, question.filter,
                limit: question.limit, room: Limits.maximumPageBytes)
            return Answer(
                events: page.events, place: Place(stream: stream.id, number: page.last),
                missed: page.missed, isRestarted: !isSame)
        }
    }

    private func enter(_ container: ContainerKey) throws -> (UInt64, AsyncStream<Void>) {
        // One wake says as much as many.
        let (wakes, continuation) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = try state.withLock { state in
            forgetAbandoned(&state)
            // Who listens to one container leaves places to those who listen to others.
            let own = state.streams[container]?.waiters.count ?? 0
            guard state.listeners < settings.listeners, own < max(1, settings.listeners / 2) else {
                throw APIError(.throttled, "too many listen at the same time", retryAfter: 5)
            }
            if state.streams[container] == nil {
                guard state.streams.count < settings.containers else {
                    throw APIError(
                        .throttled, "too many containers are listened to at the same time",
                        retryAfter: 60)
                }
                state.streams[container] = Stream(
                    id: Hexadecimal.encode(randomBytes(8)),
                    ring: EventRing(events: settings.events, bytes: settings.bytes),
                    asked: clock.measureStart())
                listened.store(state.streams.count, ordering: .relaxed)
            }
            state.listeners += 1
            state.lastListener += 1
            state.streams[container]?.waiters[state.lastListener] = continuation
            return state.lastListener
        }
        return (number, wakes)
    }

    private func release(_ container: ContainerKey, _ number: UInt64) {
        let waiter = state.withLock { $0.streams[container]?.waiters[number] }
        waiter?.finish()
    }

    private func leave(_ container: ContainerKey, _ number: UInt64) {
        let waiter = state.withLock { state in
            state.listeners -= 1
            state.streams[container]?.asked = clock.measureStart()
            return state.streams[container]?.waiters.removeValue(forKey: number)
        }
        waiter?.finish()
    }
}
