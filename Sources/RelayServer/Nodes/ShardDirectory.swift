import HTTPTypes
import Logging
import Metrics
import NIOCore
import RelayModel
import StoragePostgreSQL
import Synchronization

/// Knows the shards of the service, and the way of calls to the owners of other stores.
///
/// Concurrency: one task takes in new sights. Calls are looked up under a lock.
final class ShardDirectory: Sendable {
    private struct State {
        var map: ShardMap
        /// When each shard was last seen.
        var seen: [String: Stopwatch] = [:]
        /// Why the last look failed, and the conflicts that were logged.
        var blindness: String?
        var conflicts: [String] = []
    }

    /// How often all shards are looked at; every relay knows of a change within twice this time.
    private static let pause = Duration.milliseconds(250)

    private let own: String
    /// The ways of calls to the other shards.
    private let ways: [String: CallForwarding]
    /// The way of calls that wait because their shard is unknown.
    private let doubt: CallForwarding
    private let state: Mutex<State>
    private let meter: ShardMeter
    private let clock: any Clock<Duration>
    private let logger: Logger

    /// Creates a directory; `way` makes what forwards calls to the owner of one store.
    init(
        own: String, schemas: [String], clock: any Clock<Duration>, logger: Logger,
        metrics: any MetricsFactory,
        way: (_ shard: String, CurrentAnswerer) -> CallForwarding
    ) {
        self.own = own
        self.clock = clock
        self.logger = logger
        let others = schemas.filter { $0 != own }
        ways = Dictionary(uniqueKeysWithValues: others.map { ($0, way($0, CurrentAnswerer())) })
        doubt = way("of the container", CurrentAnswerer())
        meter = ShardMeter(schemas, metrics)
        state = Mutex(State(map: ShardMap(own: own, schemas: schemas)))
    }

    // MARK: For calls

    /// Returns how a call gets to the owner of another store, or waits until that store is known;
    /// `nil` if the call is for the relay's own store.
    func way(of head: HTTPRequest, isOperators: Bool) -> CallForwarding? {
        let subject = CallSubject(of: head, isOperators: isOperators)
        if subject == .relay { return nil }
        let map = state.withLock { $0.map }
        if map.isDoubtful(subject) { return doubt }
        return map.other(for: subject).flatMap { ways[$0] }
    }

    /// The known state of each shard.
    var standings: [ShardStanding] {
        let (map, seen) = state.withLock { ($0.map, $0.seen) }
        return map.schemas.map { schema in
            let sight = map.sights[schema]
            var standing = ShardStanding(schema: schema, isOwn: schema == own)
            standing.state = sight?.state.word ?? "unknown"
            standing.obstacle = sight == nil ? "it has not been read yet" : sight?.state.obstacle
            if case .owned(let owner)? = sight?.state {
                standing.owner = owner.name
                standing.epoch = owner.epoch
                standing.address = owner.endpoint?.address
            }
            standing.containers = sight?.containers.count ?? 0
            if sight?.isMovedAway == true { standing.noteMoved(to: map.heir(of: schema)) }
            standing.age = seen[schema]?.elapsed()
            return standing
        }
    }

    /// The known containers of other shards.
    var elsewhere: [(schema: String, keys: [ContainerKey])] {
        state.withLock { $0.map }.elsewhere
    }

    // MARK: What is seen

    /// Looks at the shards repeatedly, until the task is cancelled.
    func watch(by watch: ShardWatch) async {
        while !Task.isCancelled {
            do {
                note(try await watch.look())
            } catch {
                noteBlindness("\(error)")
            }
            meter.show(standings)
            guard (try? await clock.sleep(for: Self.pause)) != nil else { return }
        }
    }

    /// Takes in what was just seen.
    func note(_ sights: [ShardSight]) {
        let sight = clock.measureStart()
        let map = state.withLock { $0.map }.taking(sights)
        // Before calls see the new map, doubtful ones must be able to wait, and they are released
        // only afterwards.
        if let reason = map.doubt { doubt.current.note(doubt: reason) }
        let (news, wasBlind) = state.withLock { state in
            let news = map.conflicts.filter { !state.conflicts.contains($0) }
            let wasBlind = state.blindness != nil
            (state.map, state.blindness, state.conflicts) = (map, nil, map.conflicts)
            for seen in sights { state.seen[seen.schema] = sight }
            return (news, wasBlind)
        }
        for seen in sights { ways[seen.schema]?.current.note(seen.state) }
        if map.doubt == nil { doubt.current.note(doubt: nil) }
        for conflict in news {
            logger.error(
                "a container is in several shards", metadata: ["reason": "\(conflict)"])
        }
        if wasBlind { logger.info("can read the state of the shards again") }
    }

    /// Notes that a look failed; the last known state stays valid, because owners may still reach
    /// the database.
    private func noteBlindness(_ reason: String) {
        let isNews = state.withLock { state in
            defer { state.blindness = reason }
            return state.blindness == nil
        }
        if isNews {
            logger.warning(
                "cannot read the state of the shards at the moment",
                metadata: ["reason": "\(reason)"])
        }
    }

    /// Forwards no more calls.
    func end() {
        for way in Array(ways.values) + [doubt] { way.current.post(.ended) }
    }
}

/// Publishes the state of the shards as metrics.
struct ShardMeter: Sendable {
    private struct Gauges {
        let owned: Gauge
        let age: Gauge
        let containers: Gauge
    }

    private let gauges: [String: Gauges]

    init(_ schemas: [String], _ factory: any MetricsFactory) {
        gauges = Dictionary(
            uniqueKeysWithValues: schemas.map { schema in
                func gauge(_ label: String) -> Gauge {
                    Gauge(label: label, dimensions: [("shard", schema)], factory: factory)
                }
                return (
                    schema,
                    Gauges(
                        owned: gauge("belfry_shard_owned"), age: gauge("belfry_shard_age_seconds"),
                        containers: gauge("belfry_shard_containers"))
                )
            })
    }

    func show(_ standings: [ShardStanding]) {
        for standing in standings {
            guard let gauges = gauges[standing.schema] else { continue }
            gauges.owned.record(standing.owner == nil ? 0 : 1)
            gauges.containers.record(standing.containers)
            if let age = standing.age { gauges.age.record(age / .seconds(1)) }
        }
    }
}
