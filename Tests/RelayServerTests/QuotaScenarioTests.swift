import HTTPTypes
import RelayModel
import RelayServer
import Storage
import Testing

/// Quotas as clients and operators meet them.
@Suite struct QuotaScenarioTests {
    private static let path = "containers/iCloud.com.example.Art/development"

    private static func save(_ relay: TestRelay, _ id: String) async throws -> JSONValue? {
        let answer = try await relay.post(
            "subscriptions/modify",
            #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"\#(id)","#
                + #""subscriptionType":"query","firesOn":["create"],"query":{"recordType":"Art","#
                + #""filterBy":[{"comparator":"EQUALS","fieldName":"a","fieldValue":{"value":"#
                + #""\#(id)"}}]}}}]}"#)
        guard case .array(let entries)? = answer["subscriptions"] else { return nil }
        return entries.first
    }

    @Test func `simultaneous changes of different settings are all kept`() async throws {
        try await TestRelay.with { relay in
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for quota in Quota.allCases {
                    tasks.addTask {
                        let body = #"{"quotas":{"\#(quota.rawValue)":7}}"#
                        let answer = try await relay.admin(.patch, Self.path, body)
                        #expect(answer.status == 200, "\(answer.text)")
                    }
                }
                try await tasks.waitForAll()
            }
            let shown = try await relay.admin(.get, Self.path)
            guard case .object(let quotas)? = shown["quotas"] else {
                Issue.record("\(shown.text)")
                return
            }
            #expect(quotas.members.count == Quota.allCases.count)
        }
    }

    @Test func `simultaneous changes of different members of a source are all kept`() async throws {
        let path = "\(Self.path)/sources/shop"
        let names = (0..<12).map { "t\($0)" }
        try await TestRelay.with { relay in
            let made = try await relay.admin(
                .put, path, #"{"preset":"supabase","verification":{"scheme":"none"}}"#)
            #expect(made.status == 201, "\(made.text)")
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for name in names {
                    tasks.addTask {
                        let body = #"{"mapping":{"recordTypes":{"\#(name)":"Art"}}}"#
                        let answer = try await relay.admin(.put, path, body)
                        #expect(answer.status == 200, "\(answer.text)")
                    }
                }
                try await tasks.waitForAll()
            }
            let shown = try await relay.admin(.get, path)
            guard case .object(let mapping)? = shown["mapping"],
                case .object(let types)? = mapping["recordTypes"]
            else {
                Issue.record("\(shown.text)")
                return
            }
            #expect(Set(types.members.map(\.name)) == Set(names))
        }
    }

    @Test func `an operator sets quotas, and a client learns which one is reached`() async throws {
        try await TestRelay.with { relay in
            let set = try await relay.admin(
                .patch, Self.path, #"{"quotas":{"userSubscriptions":1,"records":5}}"#)
            #expect(set["quotas"] == ["userSubscriptions": 1, "records": 5])
            // Quotas that are not named stay, and null removes one.
            let cleared = try await relay.admin(
                .patch, Self.path, #"{"quotas":{"records":null,"zones":7}}"#)
            #expect(cleared["quotas"] == ["userSubscriptions": 1, "zones": 7])
            guard case .object(let saved)? = try await Self.save(relay, "a"),
                case .object(let refused)? = try await Self.save(relay, "b")
            else {
                Issue.record("no answer")
                return
            }
            #expect(saved["serverErrorCode"] == nil)
            #expect(refused["serverErrorCode"] == "QUOTA_EXCEEDED")
            #expect(
                refused["reason"]
                    == .string(
                        "the quota userSubscriptions is reached: 1 subscriptions of the user are "
                            + "allowed, and there are 1"))
            #expect(refused["quota"] == "userSubscriptions")
            #expect(refused["limit"] == 1)
            #expect(refused["use"] == 1)
            let shown = try await relay.admin(.get, Self.path)
            guard case .object(let use)? = shown["use"] else {
                Issue.record("\(shown.text)")
                return
            }
            #expect(use["subscriptions"] == ["use": 1, "limit": 5_000_000])
            #expect(use["zones"] == ["use": 0, "limit": 7])
            #expect(use["recordsNotKept"] == 0)
        }
    }

    @Test(
        arguments: [
            (#"{"quotas":{"users":1}}"#, "quotas.users: unknown field"),
            (#"{"quotas":{"zones":-1}}"#, "quotas.zones: must be 0 to 1000000000000"),
            (#"{"quotas":{"zones":"many"}}"#, "quotas.zones: "),
            (#"{"quotas":3}"#, "quotas: "),
        ])
    func `invalid quotas are refused:`(body: String, reason: String) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.admin(.patch, Self.path, body)
            #expect(answer.status == 400)
            guard case .string(let text)? = answer["reason"] else {
                Issue.record("\(answer.text)")
                return
            }
            #expect(text.hasPrefix(reason), "\(text)")
        }
    }

    @Test func `a device beyond a quota is refused with the quota`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(.patch, Self.path, #"{"quotas":{"devices":0}}"#)
            let token = String(repeating: "ab", count: 32)
            let answer = try await relay.call(
                .post,
                "/device/1/iCloud.com.example.Art/development/tokens/register\(TestRelay.query())",
                body: #"{"apnsEnvironment":"production","apnsToken":"\#(token)"}"#)
            #expect(answer.status == 413)
            #expect(answer["quota"] == "devices")
        }
    }

    @Test func `a container has a limited number of places for queries`() async throws {
        try await TestRelay.with { relay in
            _ = try await relay.admin(.patch, Self.path, #"{"quotas":{"queries":0}}"#)
            _ = try await relay.post(
                "records/modify",
                #"{"operations":[{"operationType":"create","record":{"recordType":"Art","#
                    + #""recordName":"a","fields":{}}}]}"#)
            let answer = try await relay.post(
                "records/query", #"{"query":{"recordType":"Art"}}"#)
            #expect(answer.status == 429)
            #expect(answer["quota"] == "queries")
            #expect(answer.headers[.retryAfter] == "1")
        }
    }
}
