package import Fanout
import Logging
import Metrics

extension FollowerPulse {
    /// The interval between two looks at the follower.
    private static let interval: Duration = .seconds(1)

    /// Logs each entry at which the follower stands still, once, and records the duration as a
    /// metric.
    func watch(_ world: World, _ logger: Logger) async throws {
        let gauge = Gauge(label: "belfry_follower_stalled_seconds")
        var told: FollowerPulse.Stand?
        while true {
            let stand = self.stand
            gauge.record(stand?.duration.components.seconds ?? 0)
            if let stand, stand.position != told?.position {
                logger.critical(
                    "the follower is stuck", metadata: ["position": "\(stand.position)"])
            }
            told = stand
            try await world.clock.sleep(for: Self.interval)
        }
    }
}

extension Readiness {
    /// Creates the readiness from the follower's pulse, from the reasons why the relay does not
    /// follow the log yet, and from what the store is short of.
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
    /// A sentence for `/readyz`.
    var reason: String {
        "stuck at position \(position) for \(duration.components.seconds) s"
    }
}
