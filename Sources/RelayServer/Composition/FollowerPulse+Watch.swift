package import Fanout
import Logging
import Metrics

extension FollowerPulse {
    /// How often the follower is looked at.
    private static let interval: Duration = .seconds(1)

    /// Tells once of each entry at which the follower stands still, and shows it as a metric.
    func watch(_ world: World, _ logger: Logger) async throws {
        let gauge = Gauge(label: "belfry_follower_stalled_seconds")
        var told: FollowerPulse.Stand?
        while true {
            let stand = self.stand
            gauge.record(stand?.duration.components.seconds ?? 0)
            if let stand, stand.position != told?.position {
                logger.critical(
                    "the follower stands still", metadata: ["position": "\(stand.position)"])
            }
            told = stand
            try await world.clock.sleep(for: Self.interval)
        }
    }
}

extension Readiness {
    /// What is so by the follower's pulse, by the reasons why the relay does not follow yet, if it
    /// does not, and by what the store is short of.
    package init(_ pulse: FollowerPulse, unready: [String: String]? = nil, shortage: String? = nil)
    {
        if let stand = pulse.stand {
            self = .notReady(["follower": stand.reason])
        } else if let reasons = unready {
            self = .notReady(reasons)
        } else {
            self = shortage.map { .notReady(["storage": $0]) } ?? .ready
        }
    }
}

extension FollowerPulse.Stand {
    /// What is told of it.
    var reason: String {
        "stands still at position \(position) for \(duration.components.seconds) s"
    }
}
