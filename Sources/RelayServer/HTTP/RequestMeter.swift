import CoreMetrics
import Metrics
import Synchronization

/// Counts requests and their durations, by method, path and status.
///
/// Creating a series costs more than counting in it, so each is created once.
final class RequestMeter: Sendable {
    private struct Kind: Hashable {
        let method: String
        let path: String
        let status: Int
    }

    private struct Series {
        let requests: Counter
        let seconds: Metrics.Timer
    }

    /// The methods that have series of their own.
    ///
    /// HTTP has about fifty methods, and clients choose them. With each method on each path, an
    /// unauthenticated client could use up all series that are allowed, and hide those of others.
    private static let methods: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
    ]
    /// The maximum number of remembered series; further ones are created at each use.
    private static let most = 2048

    private let factory: any MetricsFactory
    private let known = Mutex<[Kind: Series]>([:])

    init(_ factory: any MetricsFactory) {
        self.factory = factory
    }

    /// Counts a request that was answered with `status`; `path` is its route's template.
    func record(_ status: Int, method: String, path: String, _ duration: Duration) {
        let name = Self.methods.contains(method) ? method : "other"
        let kind = Kind(method: name, path: path, status: status)
        let series = known.withLock { known in
            if let series = known[kind] { return series }
            let series = named(kind)
            if known.count < Self.most { known[kind] = series }
            return series
        }
        series.requests.increment()
        series.seconds.record(duration: duration)
    }

    private func named(_ kind: Kind) -> Series {
        let place = [("method", kind.method), ("path", kind.path)]
        return Series(
            requests: Counter(
                label: "belfry_http_requests_total",
                dimensions: place + [("status", String(kind.status))], factory: factory),
            seconds: Metrics.Timer(
                label: "belfry_http_request_seconds", dimensions: place, factory: factory))
    }
}
