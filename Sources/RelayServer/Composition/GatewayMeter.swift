import Gateway
import Metrics

/// Records the requests and connections that are open at the gateway as metrics.
struct GatewayMeter: Sendable {
    private let waiting = Gauge(label: "belfry_gateway_requests_waiting")
    private let open = Gauge(label: "belfry_gateway_requests_open")
    private let connections = Gauge(label: "belfry_gateway_connections")

    /// Records a gauge of the gateway, which is at most one second old.
    func show(_ gauge: GatewayGauge) {
        waiting.record(gauge.waiting)
        open.record(gauge.open)
        connections.record(gauge.connections)
    }
}
