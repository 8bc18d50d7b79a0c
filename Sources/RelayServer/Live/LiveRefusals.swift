import CoreMetrics
import Metrics

/// Counts the live clients who are not let in, by what refused them, and those who are ended.
struct LiveRefusals: Sendable {
    /// What refuses a client.
    enum Reason: String, Sendable {
        /// What asks for a WebSocket, asks wrongly.
        case upgrade
        /// A page that may not connect.
        case origin
        /// The end of the relay.
        case closing
        /// What a `hello` brings proves nobody.
        case credentials
        /// A `hello` comes too often by its address, key or user.
        case rate
        /// A `hello` is wrong otherwise, or cannot be worked now.
        case hello
        /// So many may begin in a second.
        case hellosPerSecond
        case connections, connectionsPerContainer, connectionsPerUser

        /// Why what a `hello` brings is refused.
        init(refusing end: LiveEnd) {
            switch end.code {
            case .unauthorized, .forbidden: self = .credentials
            case .tooMany: self = .rate
            default: self = .hello
            }
        }
    }

    private let factory: any MetricsFactory

    init(_ factory: any MetricsFactory) {
        self.factory = factory
    }

    func count(_ reason: Reason) {
        Counter(
            label: "belfry_live_refused_total", dimensions: [("reason", reason.rawValue)],
            factory: factory
        ).increment()
    }

    /// Counts one who was let in and is ended by the relay.
    func count(ended end: LiveEnd) {
        Counter(
            label: "belfry_live_ends_total", dimensions: [("code", "\(end.code.rawValue)")],
            factory: factory
        ).increment()
    }
}
