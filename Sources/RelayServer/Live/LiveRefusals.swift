import CoreMetrics
import Metrics

/// Counts the live clients that are refused, by reason, and those that the relay ends, by code.
struct LiveRefusals: Sendable {
    /// The reason for refusing a client.
    enum Reason: String, Sendable {
        /// The request for a WebSocket is malformed.
        case upgrade
        /// The page may not connect.
        case origin
        /// The relay is shutting down.
        case closing
        /// The credentials of a `hello` are not valid.
        case credentials
        /// The address, key or user has said `hello` too often.
        case rate
        /// A `hello` is wrong in another way, or cannot be worked now.
        case hello
        /// Too many clients have begun in this second.
        case hellosPerSecond
        case connections, connectionsPerContainer, connectionsPerUser

        /// Creates the reason for which a `hello` is refused.
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

    /// Counts a client that was admitted and is ended by the relay.
    func count(ended end: LiveEnd) {
        Counter(
            label: "belfry_live_ends_total", dimensions: [("code", "\(end.code.rawValue)")],
            factory: factory
        ).increment()
    }
}
