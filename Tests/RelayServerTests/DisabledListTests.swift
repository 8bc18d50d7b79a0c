import Fanout
import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

/// The operator sees subscriptions that are disabled and a follower that does not advance.
@Suite struct DisabledListTests {
    private static let path = "containers/iCloud.com.example.Art/development/subscriptions"

    private static func save(_ relay: TestRelay, _ id: String, as user: String) async throws {
        let saved = try await relay.post(
            "subscriptions/modify",
            """
            {"operations":[{"operationType":"create","subscription":{"subscriptionID":"\(id)",
            "subscriptionType":"query","query":{"recordType":"Artwork",
            "predicate":"artist == '\(id)'"},"firesOn":["create"],
            "notificationInfo":{"alertBody":"x"}}}]}
            """, user: user)
        #expect(saved.status == 200 && !saved.text.contains("serverErrorCode"), "\(saved.text)")
    }

    /// Returns the IDs of a page and where the next one begins.
    ///
    /// Disabled subscriptions have an exclamation mark after their ID.
    private static func page(
        _ relay: TestRelay, _ query: String
    ) async throws -> (ids: [String], after: String?, before: String?) {
        let answer = try await relay.admin(.get, path + query)
        #expect(answer.status == 200, "\(answer.text)")
        guard case .array(let elements)? = answer["subscriptions"] else { return ([], nil, nil) }
        let ids = elements.compactMap { element -> String? in
            guard case .string(let id)? = element.value(at: ["subscriptionID"]) else { return nil }
            return element.value(at: ["disabled", "reason"]) == nil ? id : id + "!"
        }
        func place(_ name: String) -> String? {
            guard case .string(let place)? = answer[name] else { return nil }
            return place
        }
        return (ids, place("after"), place("before"))
    }

    @Test func `the operator's list shows disabled subscriptions with the reason`() async throws {
        try await TestRelay.with { relay in
            for (number, user) in ["_alice", "_alice", "_bob", "_bob", "_alice"].enumerated() {
                try await Self.save(relay, "s\(number)", as: user)
            }
            #expect(try await Self.page(relay, "").ids == ["s4", "s3", "s2", "s1", "s0"])
            var serials: [UInt64] = []
            for user in ["_alice", "_bob"] {
                let owner = SubscriptionOwner(
                    container: TestRelay.container, database: .public, user: known(user))
                serials += try await relay.store.subscriptions(of: owner)
                    .filter { ["s1", "s3"].contains($0.subscription.id.rawValue) }.map(\.serial)
            }
            for position in 1...UInt64(RelayStore.strikesOfSubscription) {
                _ = try await relay.store.setAside(
                    DearEntry(
                        position: LogPosition(position), container: TestRelay.container,
                        dearest: serials, reason: "it took too many steps"), at: TestRelay.now)
            }
            #expect(try await Self.page(relay, "").ids == ["s4", "s3!", "s2", "s1!", "s0"])
            #expect(try await Self.page(relay, "?user=_alice").ids == ["s4", "s1!", "s0"])
            #expect(try await Self.page(relay, "?user=_carol").ids == [])
            #expect(try await Self.page(relay, "?state=disabled").ids == ["s3!", "s1!"])
            #expect(try await Self.page(relay, "?state=active").ids == ["s4", "s2", "s0"])
            #expect(try await Self.page(relay, "?recordType=Poem").ids == [])
            // Pages of every size lead through all subscriptions, once and in order.
            for limit in 1...6 {
                var all: [String] = []
                var after: String? = "0"
                while let begin = after, all.count < 10 {
                    let page = try await Self.page(relay, "?limit=\(limit)&after=\(begin)")
                    #expect(page.ids.count <= limit)
                    all += page.ids
                    after = page.after
                }
                #expect(all == ["s0", "s1!", "s2", "s3!", "s4"], "\(limit)")
            }
            for limit in 1...6 {
                var all: [String] = []
                var before: String? = ""
                while let begin = before, all.count < 10 {
                    let page = try await Self.page(relay, "?limit=\(limit)\(begin)")
                    #expect(page.ids.count <= limit)
                    all += page.ids
                    before = page.before.map { "&before=\($0)" }
                }
                #expect(all == ["s4", "s3!", "s2", "s1!", "s0"], "\(limit)")
            }
            // Their owner may look them up in any order.
            let found = try await relay.post(
                "subscriptions/lookup", #"{"subscriptions":["s3","s0","s1","none"]}"#)
            let entries = try #require(found["subscriptions"])
            #expect(entries.value(at: ["0", "serverErrorCode"]) == "NOT_FOUND", "\(found.text)")
            #expect(entries.value(at: ["1", "subscriptionID"]) == "s0")
            #expect(entries.value(at: ["1", "disabled"]) == nil)
            #expect(entries.value(at: ["2", "subscriptionID"]) == "s1")
            #expect(entries.value(at: ["2", "disabled", "reason"]) != nil)
            #expect(entries.value(at: ["3", "serverErrorCode"]) == "NOT_FOUND")
            let shown = try await relay.admin(.get, Self.path)
            #expect(
                shown["subscriptions"]?.text.contains(
                    "its condition takes too many steps: 3 changes were set aside for it") == true)
        }
    }

    @Test func `readyz names a follower that does not advance and its position`() async throws {
        let elapsed = Elapsed()
        let pulse = FollowerPulse { elapsed.duration }
        try await TestRelay.with(readiness: Readiness(pulse)) { relay in
            pulse.work(
                on: FollowerPulse.Entry(position: LogPosition(7), container: Fixtures.container))
            elapsed.advance(by: .seconds(7))
            #expect(try await relay.call(.get, "/readyz").status == 200)
            elapsed.advance(by: .seconds(2))
            let still = try await relay.call(.get, "/readyz")
            #expect(still.status == 503)
            #expect(
                still["reasons"] == ["follower": "stuck at position 7 for 9 s"],
                "\(still.text)")
            // The liveness check succeeds all the while.
            #expect(try await relay.call(.get, "/healthz").status == 200)
            pulse.rest()
            #expect(try await relay.call(.get, "/readyz").status == 200)
        }
    }

    /// A clock that the test moves.
    private final class Elapsed: Sendable {
        private let value = Mutex(Duration.zero)

        var duration: Duration { value.withLock { $0 } }

        func advance(by step: Duration) {
            value.withLock { $0 += step }
        }
    }

    @Test func `a relay that is not ready says why`() {
        let pulse = FollowerPulse { .zero }
        #expect(Readiness(pulse) == .ready)
        #expect(
            Readiness(pulse, unready: ["follower": "recovering"], shortage: "no room")
                == .notReady(["follower": "recovering"]))
        #expect(Readiness(pulse, shortage: "no room") == .notReady(["storage": "no room"]))
    }
}
