import Logging
import Metrics
import ServiceLifecycle
import StoragePostgreSQL
import Synchronization

extension Relay {
    /// The interval at which the relay checks whether another machine should own the store.
    private static let look = Duration.seconds(1)

    /// Ends the relay once the store must be handed over to the machine that should own it.
    ///
    /// The relay shuts down gracefully; `RelayStage` then starts a new one that stands by.
    func spread(by census: StoreCensus) async throws {
        var patience = HandOverPatience(
            of: configuration.storageSchema, on: configuration.nodes.machine(of: world),
            configuration.nodes.handOver)
        let counter = Counter(label: "belfry_store_handovers_total")
        counter.increment(by: 0)
        let began = world.clock.measureStart()
        var told: String?
        while true {
            try await world.clock.sleep(for: Self.look)
            let verdict = patience.verdict(
                on: census.sight, isFollowing: walk.isFollowing, at: began.elapsed())
            switch verdict {
            case .keep(let hindrance):
                if let hindrance, hindrance != told {
                    told = hindrance
                    logger.notice(
                        "not spreading the stores over the machines",
                        metadata: ["reason": "\(hindrance)"])
                }
            case .handOver(let machine):
                logger.notice(
                    "handing the store over to the machine that should own it",
                    metadata: ["machine": "\(machine)"])
                counter.increment()
                handedOver.withLock { $0 = true }
                handOver.continuation.yield()
                return try await gracefulShutdown()
            }
        }
    }

    /// Whether the relay ended because another machine should own the store.
    package var isHandedOver: Bool { handedOver.withLock { $0 } }
}

extension NodeSettings {
    /// Returns the name of this machine by which stores are spread.
    func machine(of world: World) -> String { machine ?? world.machine }
}
