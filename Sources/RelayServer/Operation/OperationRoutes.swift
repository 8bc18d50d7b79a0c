import HTTPTypes
import RelayModel

/// Health, readiness and metrics.
struct OperationRoutes: Sendable {
    /// Whether the relay can serve, and if not, why.
    let readiness: @Sendable () async -> Readiness
    /// The metrics as Prometheus reads them.
    let renderMetrics: @Sendable () -> String

    var routes: [RelayRoute] {
        [
            RelayRoute(open: .operation, "GET", "/") { _ in root },
            // Alive is whoever answers.
            RelayRoute(open: .operation, "GET", "/healthz") { _ in
                RelayAnswer(json: ["status": "ok"])
            },
            RelayRoute(open: .operation, "GET", "/readyz", respond: ready),
            RelayRoute(open: .metrics, "GET", "/metrics") { [renderMetrics] _ in
                RelayAnswer(
                    text: renderMetrics(), contentType: "text/plain; version=0.0.4; charset=utf-8")
            },
        ]
    }

    /// Who looks at the bare address shall know what answers there, and where to go on.
    var root: RelayAnswer {
        RelayAnswer(json: [
            "service": "belfry", "calls": "/openapi.json", "health": "/healthz",
            "readiness": "/readyz", "live": "/live",
        ])
    }

    private func ready(_ request: RelayRequest) async throws -> RelayAnswer {
        switch await readiness() {
        case .ready:
            return RelayAnswer(json: ["status": "ready"])
        case .notReady(let reasons):
            let parts = reasons.sorted { $0.key < $1.key }
            var answer = RelayAnswer(
                status: 503,
                json: [
                    "status": "not ready",
                    "reasons": .object(JSONObject(parts.map { ($0.key, .string($0.value)) })),
                ])
            answer.headers[.retryAfter] = "1"
            return answer
        }
    }
}
