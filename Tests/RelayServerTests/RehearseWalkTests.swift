import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

@testable import RelayServer

/// Compares the counts of rehearsals with the pushes that were really sent.
///
/// It does so for every version of every subscription of random histories.
@Suite(.serialized, .timeLimit(.minutes(30))) struct RehearseWalkTests {
    @Test(arguments: [11, 12, 13] as [UInt64])
    func `a rehearsal counts what the walk sent`(seed: UInt64) async throws {
        try await RunningRelay.with(["--queries-seconds", "3600"]) { relay in
            var history = RandomHistory(seed: seed, relay: relay)
            // The present devices are those that were told, and no push replaces another one.
            history.isPlain = true
            try await history.run(steps: 120)
            try await relay.relay.waitUntilSettled(within: .patience)
            var compared = 0
            var fired = 0
            for (user, database, id) in history.subscriptions {
                let owner = SubscriptionOwner(
                    container: relay.container.key,
                    database: try #require(DatabaseScope(rawValue: database)),
                    user: Fixtures.identifier(user))
                let versions = try await relay.relay.store.pastSubscriptions(
                    Fixtures.identifier(id), of: owner, limit: 100)
                for version in versions {
                    fired += try await Self.compare(version, relay)
                    compared += 1
                }
            }
            #expect(compared > 15 && fired > 30, "\(compared) versions, \(fired) fired")
        }
    }

    /// Compares one version with its pushes, and returns how often it fired.
    private static func compare(
        _ past: PastSubscription, _ relay: RunningRelay
    ) async throws -> Int {
        let subscription = past.version.subscription
        let activation = past.version.activation
        var question: JSONObject = [
            "subscription": .object(subscription.json), "after": .string("\(activation)"),
        ]
        question["before"] = past.ended.map { .string(String($0.rawValue + 1)) }
        let reply = try await relay.container.call(
            "subscriptions/rehearse", .object(question), as: subscription.owner.rawValue,
            in: subscription.database.rawValue
        ).expect(200)
        let sent = relay.gateway.simulated.pushes.compactMap { push -> UInt64? in
            guard push.json.value(at: ["ck", "ckuserid"]) == .string(subscription.owner.rawValue),
                case .string(let text)? = push.json.value(at: ["belfry", "seq"]),
                let position = UInt64(text), position > activation.rawValue,
                position <= past.ended?.rawValue ?? .max
            else { return nil }
            let names = ["qry", "fet", "met"].compactMap {
                push.json.value(at: ["ck", $0, "sid"])
            }
            return names == [.string(subscription.id.rawValue)] ? position : nil
        }
        let positions = Set(sent)
        #expect(
            reply["pushes"] == .integer(Int64(sent.count)),
            "\(subscription.id) of \(subscription.owner): \(sent.sorted()); \(reply.text)")
        guard case .integer(let fired)? = reply["fired"] else { return 0 }
        #expect(fired >= Int64(positions.count))
        if subscription.suppress == .none { #expect(fired == Int64(positions.count)) }
        if subscription.firesOnce {
            #expect(reply["once", "position"] == past.claimed.map { .string("\($0)") })
        }
        return Int(fired)
    }
}
