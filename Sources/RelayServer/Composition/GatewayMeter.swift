import Gateway
import Metrics

/// Shows what is with the gateway at this moment.
struct GatewayMeter: Sendable {
    private let waiting = Gauge(label: "belfry_gateway_requests_waiting")
    private let open = Gauge(label: "belfry_gateway_requests_open")
    private let connections = Gauge(label: "belfry_gateway_connections")

    /// Shows a gauge of the gateway, which is a second old at most.
    func show(_ gauge: GatewayGauge) {
        waiting.record(gauge.waiting)
        open.record(gauge.open)
        connections.record(gauge.connections)
    }
}
