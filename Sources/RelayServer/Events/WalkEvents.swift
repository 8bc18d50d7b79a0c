package import Delivery
package import Fanout
package import RelayModel
import ServiceLifecycle
import Synchronization

/// The events of the walk, kept for a while for those who listen.
///
/// Events of a container are kept only if a listener asked for them within the last minute. A
/// change of any other container costs one look at a counter.
///
/// Concurrency: a lock around the rings; no other code is called while it is held. The walk never
/// waits for a listener; a slow listener learns how many events it missed.
package final class WalkEvents: Sendable {
    /// The limits of listening.
    package struct Settings: Sendable, Hashable {
        /// The longest time that a call is held; commands give up after a minute.
        package var hold: Duration = .seconds(30)
        /// The maximum number of held calls; one container may have half of them.
        package var listeners = 32
        /// The maximum number of containers that are listened to; each takes at most ``bytes``.
        package var containers = 8
        /// The maximum number of events that are kept of one container.
        package var events = 4096
        /// The approximate maximum number of bytes that are kept of one container.
        package var bytes = 4 * 1024 * 1024
        /// How long events are kept after the last call.
        package var lease: Duration = .seconds(60)

        package init() {}
    }

    /// A place among the events of a container; a listener sends it back to continue.
    struct Place: Sendable, Hashable, CustomStringConvertible {
        /// The identity of the ring; each new ring numbers its events from 1 again.
        let stream: String
        let number: UInt64

        init(stream: String, number: UInt64) {
            self.stream = stream
            self.number = number
        }

        /// Parses the text that ``description`` returns.
        init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].utf8.count == 16, let number = UInt64(parts[1]) else {
                return nil
            }
            self.init(stream: String(parts[0]), number: number)
        }

        var description: String { "\(stream).\(number)" }
    }

    /// The answer to a listener.
    struct Answer: Sendable {
        var events: [(number: UInt64, event: WalkEvent)]
        /// The place from which the listener continues.
        var place: Place
        var missed: UInt64
        /// Whether the listener's place belongs to an earlier ring, so that earlier events are
        /// unknown.
        var isRestarted: Bool

        var isWorthSaying: Bool { !events.isEmpty || missed > 0 || isRestarted }
    }

    /// A request of a listener.
    struct Question: Sendable {
        let container: ContainerKey
        /// The place after which to begin; `nil` means now.
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
    /// The number of containers that are listened to, which can be read without the lock.
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

    /// The watch through which the follower reports judged changes.
    package var watch: ChangeWatch {
        ChangeWatch { [self] container in
            isListened(to: container)
        } tell: { [self] judged in
            let events = WalkEvent.events(of: judged, at: now())
            append(events.map { (judged.container, $0) })
        }
    }

    /// Records pushes that are handed over for sending.
    package func handOver(_ deliveries: [OwedDelivery]) {
        guard listened.load(ordering: .relaxed) > 0, !deliveries.isEmpty else { return }
        let now = now()
        append(deliveries.map { ($0.delivery.container, .push($0.delivery, at: now)) })
    }

    /// The watch through which the ledger reports answers of the gateway.
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

    /// Returns the events after the place in `question`, and waits for the first one up to `hold`.
    ///
    /// If `question` has no place, it returns at once with one from which no later event is missed.
    ///
    /// - Throws: 429 if there are too many listeners.
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
                // The relay's shutdown releases the listener too.
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
                preconditionFailure("a listener must hold its stream")
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
        // One pending wake-up is as good as several.
        let (wakes, continuation) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = try state.withLock { state in
            forgetAbandoned(&state)
            // The listeners of one container must leave room for those of others.
            let own = state.streams[container]?.waiters.count ?? 0
            guard state.listeners < settings.listeners, own < max(1, settings.listeners / 2) else {
                throw APIError(.throttled, "too many listeners at the same time", retryAfter: 5)
            }
            if state.streams[container] == nil {
                guard state.streams.count < settings.containers else {
                    throw APIError(
                        .throttled, "too many containers have listeners at the same time",
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
