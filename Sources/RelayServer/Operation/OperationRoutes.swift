import HTTPTypes
import RelayModel

/// Health, readiness and metrics.
struct OperationRoutes: Sendable {
    private let dependencies: RelayDependencies

    init(_ dependencies: RelayDependencies) {
        self.dependencies = dependencies
    }

    var routes: [RelayRoute] {
        [
            // Alive is whoever answers.
            RelayRoute(open: .operation, "GET", "/healthz") { _ in
                RelayAnswer(json: ["status": "ok"])
            },
            RelayRoute(open: .operation, "GET", "/readyz", respond: readiness),
            RelayRoute(open: .metrics, "GET", "/metrics") {
                [render = dependencies.renderMetrics] _ in
                RelayAnswer(
                    text: render(), contentType: "text/plain; version=0.0.4; charset=utf-8")
            },
        ]
    }

    private func readiness(_ request: RelayRequest) async throws -> RelayAnswer {
        switch await dependencies.readiness() {
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
