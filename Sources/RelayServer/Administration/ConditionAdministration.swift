import Fanout
import PredicateLanguage
import RelayModel
import Storage

/// Checks a condition as if a subscription with it were saved, and saves nothing.
struct ConditionAdministration: AdministrationTable {
    let registry: any ContainerRegistry
    let knowledge: SubscriptionKnowledge
    let indexes: IndexDirectory
    let limits: RequestLimits
    /// The executor of conditions that take long to read.
    let bodies: LongBodies

    var routes: [AdministrationRoute] {
        [AdministrationRoute(.checkSubscription, respond: check)]
    }

    /// The members that say what a subscription watches; the call makes up the rest of the
    /// subscription.
    static let members = ["query", "firesOn", "firesWhen", "changedKeys"]

    private func check(_ request: RelayRequest) async throws -> RelayAnswer {
        let settings = try await registry.settings(in: request)
        let body = try AdministrationCall.checkSubscription.body(of: request)
        guard let nobody = UserID(rawValue: "_nobody") else {
            preconditionFailure("a valid user ID")
        }
        let owner = SubscriptionOwner(container: settings.key, database: .public, user: nobody)
        let known = try await knowledge.known(
            of: settings.key, for: .operators, at: request.receivedAt)
        var dictionary: JSONObject = [
            "subscriptionID": "checked", "subscriptionType": "query",
            "firesOn": ["create", "update", "delete"],
            "notificationInfo": ["shouldSendContentAvailable": true],
        ]
        for name in Self.members {
            if let value = body.value(name) { dictionary[name] = value }
        }
        let reading = SubscriptionOperationReading(
            owner: owner, limits: limits, schema: known.schema, assignedID: "checked")
        let checked = try JSONReader(.object(dictionary))
        let subscription = try await bodies.reading(request, of: settings.key, by: .server) {
            try reading.subscription(checked)
        }
        var scaled = limits.costs.narrowed(by: settings.costs)
        scaled.perUser = .max
        let scales = PredicateScales(indexes: indexes, limits: scaled)
        let cost: PredicateCost
        if request.body.count > LongBodies.leastOfConditions {
            cost = try await bodies.apart(of: settings.key) {
                try scales.weigh(subscription, path: "")
            }
        } else {
            cost = try await indexes.whenFree(settings.key) {
                try scales.weigh(subscription, path: "")
            }
        }
        let warnings = try await bodies.reading(request, of: settings.key, by: .server) {
            known.warnings(of: subscription)
        }
        guard case .query(let query, _) = subscription.scope else {
            preconditionFailure("a query subscription has a query")
        }
        return RelayAnswer(json: [
            "canonical": .string(query.canonical), "predicateCost": cost.json,
            "warnings": .array(warnings.map { .object($0.json) }),
        ])
    }
}
