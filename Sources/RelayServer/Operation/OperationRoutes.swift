package import Fanout
import HTTPTypes
import RelayModel

/// The routes for health, readiness and metrics, and the root path.
struct OperationRoutes: Sendable {
    /// Returns whether the relay can serve, and if not, why.
    let readiness: @Sendable () async -> Readiness
    /// Returns the metrics in the Prometheus text format.
    let renderMetrics: @Sendable () -> String
    /// Returns the role of this relay among those of its store; `nil` if it is the only one.
    var role: @Sendable () -> NodeRole? = { nil }

    var routes: [RelayRoute] {
        [
            RelayRoute(open: .operation, "GET", "/") { _ in root },
            // A process that can answer is alive.
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

    /// The answer at the root path: what serves here, and where to continue.
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

    /// The members that describe the role, the owner of the store, and the state that stands by.
    private var told: [(String, JSONValue)] {
        guard let role = role() else { return [] }
        return [("role", .string(role.name))]
            + (role.owner.map { [("owner", .string($0))] } ?? [])
            + (role.standby.map { [("standby", $0.json)] } ?? [])
    }
}

/// The role of a relay among those of its store.
package enum NodeRole: Sendable, Hashable {
    /// It owns the store; the value is its name.
    case owner(String)
    /// It stands by, and forwards calls to the owner if there is one.
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
    /// The status as JSON; it shows whether the relay could take over at once.
    var json: JSONValue {
        [
            "state": .string(isWarm ? "warm" : "loading"), "position": .string("\(position)"),
            "subscriptions": .integer(Int64(subscriptions)), "devices": .integer(Int64(devices)),
        ]
    }
}
