import Logging
import Metrics
import NIOCore
import Synchronization

/// What the connections of a relay share to forward calls to the owner of a store.
final class CallForwarding: Sendable {
    let current: CurrentAnswerer
    /// How long a call waits for an owner.
    let patience: Duration
    /// How long the owner may be silent about a call before it is considered lost.
    let silence: Duration
    let identifiers: RandomIdentifiers
    let meter: ForwardingMeter
    /// The limits of calls; `nil` for no limit, if this is the only store.
    let places: CallPlaces?
    /// The shard of the store; `nil` for the relay's own store.
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

    /// The error if no relay owns the store; operators get the shard and the reason.
    func nobody(told isOperators: Bool) -> String {
        guard isOperators, let shard, case .nobody(let reason) = current.answerer else {
            return ForwardedCall.nobody
        }
        return "the shard \(shard) cannot be reached: \(reason)"
    }

    /// Returns the connection pool of an event loop; must be called on that loop.
    func pool(of loop: any EventLoop) -> UpstreamPool {
        pools.withLock { pools in
            if let pool = pools[ObjectIdentifier(loop)] { return pool.value }
            let pool = UpstreamPool(loop, silence: TimeAmount(silence))
            pools[ObjectIdentifier(loop)] = NIOLoopBound(pool, eventLoop: loop)
            return pool
        }
    }

    /// The paths that a relay always answers itself.
    static let ownPaths: Set<String> = ["/healthz", "/readyz", "/metrics"]
}

/// Counts the calls that are forwarded to the owner.
final class ForwardingMeter: Sendable {
    /// How a forwarded call ended.
    enum Outcome: String, CaseIterable {
        /// The owner answered it.
        case answered
        /// This relay became the owner before anything was forwarded, and answered itself.
        case own
        /// It was refused here, because no relay owned the store or the owner was lost.
        case refused
        /// Its answer was cut off.
        case cut
        /// The client went.
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
