package import Fanout
import HTTPTypes
import RelayModel

/// Health, readiness and metrics.
struct OperationRoutes: Sendable {
    /// Whether the relay can serve, and if not, why.
    let readiness: @Sendable () async -> Readiness
    /// The metrics as Prometheus reads them.
    let renderMetrics: @Sendable () -> String
    /// What the relay is among those of its store; `nil` where there is one alone.
    var role: @Sendable () -> NodeRole? = { nil }

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
            return RelayAnswer(json: .object(JSONObject([("status", "ready")] + told)))
        case .notReady(let reasons):
            let parts = reasons.sorted { $0.key < $1.key }
            var answer = RelayAnswer(
                status: 503,
                json: .object(
                    JSONObject(
                        [
                            ("status", "not ready"),
                            (
                                "reasons",
                                .object(JSONObject(parts.map { ($0.key, .string($0.value)) }))
                            ),
                        ] + told)))
            answer.headers[.retryAfter] = "1"
            return answer
        }
    }

    /// The role, who owns the store, and how much of its state stands by.
    private var told: [(String, JSONValue)] {
        guard let role = role() else { return [] }
        return [("role", .string(role.name))]
            + (role.owner.map { [("owner", .string($0))] } ?? [])
            + (role.standby.map { [("standby", $0.json)] } ?? [])
    }
}

/// What a relay is among those of its store.
package enum NodeRole: Sendable, Hashable {
    /// It owns the store; what it is called.
    case owner(String)
    /// It stands by, and hands calls to the owner, if there is one.
    case standingBy(owner: String?, StandbyStatus? = nil)

    var name: String {
        switch self {
        case .owner: "owner"
        case .standingBy: "standingBy"
        }
    }

    var owner: String? {
        switch self {
        case .owner(let name): name
        case .standingBy(let owner, _): owner
        }
    }

    var standby: StandbyStatus? {
        guard case .standingBy(_, let status) = self else { return nil }
        return status
    }
}

extension StandbyStatus {
    /// For whoever asks whether a relay could take the owner's place at once.
    var json: JSONValue {
        [
            "state": .string(isWarm ? "warm" : "loading"), "position": .string("\(position)"),
            "subscriptions": .integer(Int64(subscriptions)), "devices": .integer(Int64(devices)),
        ]
    }
}
