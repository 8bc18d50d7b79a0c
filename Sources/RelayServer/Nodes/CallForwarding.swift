import Logging
import Metrics
import NIOCore
import Synchronization

/// What the connections of a relay need to hand calls to the owner of the store.
final class CallForwarding: Sendable {
    let current: CurrentAnswerer
    /// How long a call waits for an owner.
    let patience: Duration
    /// How long the owner may say nothing about a call before it is taken for lost.
    let silence: Duration
    let identifiers: RandomIdentifiers
    let meter: ForwardingMeter
    /// How many calls there may be; `nil` for any number, where the store is the only one.
    let places: CallPlaces?
    /// The shard whose store it is; `nil` for the relay's own.
    let shard: String?
    private let pools = Mutex<[ObjectIdentifier: NIOLoopBound<UpstreamPool>]>([:])

    init(
        _ current: CurrentAnswerer, patience: Duration, silence: Duration,
        identifiers: RandomIdentifiers, meter: ForwardingMeter, places: CallPlaces? = nil,
        shard: String? = nil
    ) {
        self.current = current
        self.patience = patience
        self.silence = silence
        self.identifiers = identifiers
        self.meter = meter
        self.places = places
        self.shard = shard
    }

    /// That nobody owns the store; operators are told which and why.
    func nobody(told isOperators: Bool) -> String {
        guard isOperators, let shard, case .nobody(let reason) = current.answerer else {
            return ForwardedCall.nobody
        }
        return "the shard \(shard) cannot be asked: \(reason)"
    }

    /// The connections of an event loop, asked for on it.
    func pool(of loop: any EventLoop) -> UpstreamPool {
        pools.withLock { pools in
            if let pool = pools[ObjectIdentifier(loop)] { return pool.value }
            let pool = UpstreamPool(loop, silence: TimeAmount(silence))
            pools[ObjectIdentifier(loop)] = NIOLoopBound(pool, eventLoop: loop)
            return pool
        }
    }

    /// What a relay answers itself, whoever owns the store.
    static let ownPaths: Set<String> = ["/healthz", "/readyz", "/metrics"]
}

/// Counts the calls that are handed to the owner.
final class ForwardingMeter: Sendable {
    /// What became of a call.
    enum Outcome: String, CaseIterable {
        /// The owner answered it.
        case answered
        /// This relay owned the store before anything was sent, and answered itself.
        case own
        /// It was refused here: nobody owned the store, or the owner was lost.
        case refused
        /// Its answer was cut off.
        case cut
        /// Its client went.
        case left
    }

    private let counters: [Outcome: Counter]
    private let gauge: Gauge
    private let underWay = Mutex(0)

    init(_ factory: any MetricsFactory) {
        counters = Dictionary(
            uniqueKeysWithValues: Outcome.allCases.map {
                (
                    $0,
                    Counter(
                        label: "belfry_forwarded_calls_total",
                        dimensions: [("outcome", $0.rawValue)], factory: factory)
                )
            })
        gauge = Gauge(label: "belfry_forwarded_calls", dimensions: [], factory: factory)
        gauge.record(0)
    }

    func begin() { change(by: 1) }

    func end(_ outcome: Outcome) {
        counters[outcome]?.increment()
        change(by: -1)
    }

    private func change(by number: Int) {
        underWay.withLock { $0 += number }
        gauge.show { underWay.withLock { $0 } }
    }
}
