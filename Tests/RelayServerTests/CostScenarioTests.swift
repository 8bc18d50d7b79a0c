import Fanout
import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The cost of predicates, as users who save them and operators see it.
@Suite(.serialized, .timeLimit(.minutes(30))) struct CostScenarioTests {
    private static func create(_ id: String, _ predicate: String) -> String {
        create(id, condition: ["predicate": .string(predicate)])
    }

    private static func create(_ id: String, condition: JSONValue) -> String {
        let members = condition.text.dropFirst()
        return SubscriptionScenarioTests.create(
            #"{"subscriptionID":"\#(id)","subscriptionType":"query","query":{"recordType":"Artwork","#
                + #"\#(members),"firesOn":["create"],"notificationInfo":{"alertBody":"new"}}"#)
    }

    private func entry(_ answer: TestRelay.Answer) -> JSONObject {
        guard case .array(let entries)? = answer["subscriptions"],
            case .object(let entry)? = entries.first
        else { return JSONObject() }
        return entry
    }

    @Test func `a save reports the cost of the predicate`() async throws {
        try await TestRelay.with { relay in
            let found = entry(
                try await relay.post(
                    "subscriptions/modify", Self.create("a", #"artist = "artist-1""#)))
            guard case .object(let cost)? = found["predicateCost"] else {
                Issue.record("no cost: \(found)")
                return
            }
            #expect(cost["isResidual"] == false)
            let share = try #require(cost["candidatesPerChange"]?.double)
            #expect(0 < share && share < 0.05)
            let all = entry(
                try await relay.post("subscriptions/modify", Self.create("b", "NOT price > 3")))
            guard case .object(let whole)? = all["predicateCost"] else {
                Issue.record("no cost: \(all)")
                return
            }
            #expect(whole["comparisonsPerChange"] == .number(1))
            // A client may send back what it received.
            var again = found
            again["subscriptionID"] = "c"
            again["zoneID"] = ["zoneName": "notes"]
            let saved = entry(
                try await relay.post(
                    "subscriptions/modify",
                    SubscriptionScenarioTests.create(JSONValue.object(again).text)))
            #expect(saved["serverErrorCode"] == nil, "\(saved)")
        }
    }

    @Test func `a predicate beyond the limit is refused with the limit's name`() async throws {
        var limits = RequestLimits()
        limits.costs.perPredicate = 2
        try await TestRelay.with(limits: limits) { relay in
            let heavy = "NOT price > 3 AND NOT year > 4 AND NOT size > 5"
            let refused = entry(
                try await relay.post("subscriptions/modify", Self.create("a", heavy)))
            #expect(refused["serverErrorCode"] == "BAD_REQUEST")
            guard case .string(let reason)? = refused["reason"] else { return }
            #expect(reason.contains("limits.predicateCost"), "\(reason)")
            #expect(reason.hasPrefix("operations[0].subscription.query: "), "\(reason)")
            let narrow = #"artist = "x" AND "# + heavy
            let saved = entry(
                try await relay.post("subscriptions/modify", Self.create("b", narrow)))
            #expect(saved["serverErrorCode"] == nil, "\(saved)")
        }
    }

    @Test func `a container can set its own cost limits and reset them`()
        async throws
    {
        try await RunningRelay.with(["--limits-predicate-cost", "2"]) { relay in
            let heavy = "NOT price > 3 AND NOT year > 4 AND NOT size > 5"
            #expect(try await save(heavy, "a", as: "alice", relay) == "limits.predicateCost")
            let set = try await relay.client.administer(
                "PATCH", relay.container.path,
                ["costLimits": ["predicate": 3, "recordType": 4]]
            ).expect(200)
            #expect(set["costLimits"] == ["predicate": 3, "recordType": 4])
            #expect(try await save(heavy, "b", as: "alice", relay) == "saved")
            let other = "NOT price > 7 AND NOT year > 8"
            #expect(try await save(other, "c", as: "alice", relay) == "limits.recordTypeCost")
            let cleared = try await relay.client.administer(
                "PATCH", relay.container.path, ["costLimits": .null]
            ).expect(200)
            #expect(cleared["costLimits"] == nil)
            #expect(try await save(other, "d", as: "alice", relay) == "saved")
            #expect(try await save(heavy, "e", as: "alice", relay) == "limits.predicateCost")
        }
    }

    @Test func `the costs of one user and of a record type are limited, equal conditions once`()
        async throws
    {
        let settings = ["--limits-user-cost", "4", "--limits-record-type-cost", "6"]
        try await RunningRelay.with(settings) { relay in
            var answers: [String: [String]] = [:]
            for user in ["alice", "bob"] {
                for number in 0..<8 {
                    answers[user, default: []].append(
                        try await save("NOT price > \(number)", "q\(number)", as: user, relay))
                }
            }
            for number in 20..<28 {
                answers["bob", default: []].append(
                    try await save("NOT price > \(number)", "q\(number)", as: "bob", relay))
            }
            #expect(answers["alice"]?.filter { $0 == "saved" }.count == 4, "\(answers)")
            // Bob's first four conditions equal Alice's, so they only count for his own share.
            #expect(answers["bob"]?.filter { $0 == "saved" }.count == 4, "\(answers)")
            #expect(answers["alice"]?.last == "limits.userCost", "\(answers)")
            let index = try await relay.client.administer(
                "GET", relay.container.path + "/index", nil
            ).expect(200)
            #expect(index["subscriptions"] == 8)
            guard case .array(let types)? = index["recordTypes"] else {
                Issue.record("no record types: \(index.text)")
                return
            }
            #expect(types == [["recordType": "Artwork", "comparisonsPerChange": .number(4)]])
        }
    }

    @Test func `at a limit a condition may be saved again or replaced by one of equal cost`()
        async throws
    {
        let settings = ["--limits-user-cost", "4", "--limits-record-type-cost", "5"]
        try await RunningRelay.with(settings) { relay in
            func update(_ id: String, _ text: String, as user: String) async throws -> String {
                let body = request("update", [(id: id, text: text)])
                let answer = try await relay.container.call(
                    "subscriptions/modify", body, as: user, in: "public"
                ).expect(200)
                try await relay.relay.waitUntilSettled(within: .patience)
                let bounds = ["limits.userCost", "limits.recordTypeCost"]
                return bounds.first { answer.text.contains($0) } ?? "saved"
            }
            let heavy = "NOT price > 3 AND NOT year > 4 AND NOT size > 5"
            // Clients save all their subscriptions at each start.
            var said = [try await save(heavy, "a", as: "alice", relay)]
            said.append(try await save(heavy, "a", as: "alice", relay))
            let other = heavy.replacing("5", with: "6")
            for text in [other, "NOT price > 3", heavy] {
                said.append(try await update("a", text, as: "alice"))
            }
            #expect(said == Array(repeating: "saved", count: 5))
            let heavier = heavy + " AND NOT x > 1 AND NOT y > 1"
            said = [try await update("a", heavier, as: "alice")]
            #expect(said == ["limits.userCost"])
            said = []
            for number in 0..<2 {
                said.append(try await save("NOT x > \(number)", "b\(number)", as: "bob", relay))
            }
            // An equal condition counts once for all users. Another one exceeds the bound.
            said.append(try await save(heavy, "c", as: "carol", relay))
            said.append(try await save("NOT z > 1", "d", as: "carol", relay))
            #expect(said == ["saved", "saved", "saved", "limits.recordTypeCost"])
            // Editing a condition that others have too frees nothing.
            said = [try await update("a", other, as: "alice")]
            said.append(try await update("a", heavy, as: "alice"))
            #expect(said == ["limits.recordTypeCost", "saved"])
        }
    }

    /// A change with that value costs as much as all the conditions under it, whatever they
    /// replaced.
    @Test func `an update from a dearer condition cannot join a full value`()
        async throws
    {
        // Sixteen of Bob's conditions are counted with two comparisons each, since many are under
        // that value already.
        let settings = ["--limits-user-cost", "33", "--limits-record-type-cost", "80"]
        try await RunningRelay.with(settings) { relay in
            func modify(
                _ kind: String, _ conditions: [(id: String, text: String)], as user: String
            ) async throws -> String {
                let answer = try await relay.container.call(
                    "subscriptions/modify", request(kind, conditions), as: user, in: "public"
                ).expect(200)
                try await relay.relay.waitUntilSettled(within: .patience)
                let isFull = answer.text.contains("limits.recordTypeCost")
                return isFull && answer.text.contains("same value") ? "crowd" : answer.text
            }
            let crowd = (0..<80).map { (id: "q\($0)", text: "artist = 'x' AND NOT price > \($0)") }
            let many = try await modify("create", crowd, as: "bob")
            #expect(!many.contains("serverErrorCode"), "\(many)")
            let heavy = "NOT price > 3 AND NOT year > 4 AND NOT size > 5"
            #expect(try await save(heavy, "a", as: "alice", relay) == "saved")
            let one = "artist = 'x' AND NOT price > 500"
            #expect(try await modify("create", [(id: "b", text: one)], as: "alice") == "crowd")
            #expect(try await modify("update", [(id: "a", text: one)], as: "alice") == "crowd")
            // The owner of a condition under that value may edit it, as long as it does not become
            // more expensive.
            for id in ["q5", "q79"] {
                let other = "artist = 'x' AND NOT price > 90\(id.dropFirst())"
                let edited = try await modify("update", [(id: id, text: other)], as: "bob")
                #expect(!edited.contains("serverErrorCode"), "\(edited)")
            }
            let dearer = "artist = 'x' AND NOT price > 9 AND NOT year > 9 AND NOT size > 9"
            let refused = try await modify("update", [(id: "q79", text: dearer)], as: "bob")
            #expect(refused.contains("limits.userCost"), "\(refused)")
            #expect(try await modify("create", [(id: "b", text: one)], as: "alice") == "crowd")
            // An equal condition is not evaluated once more.
            let equal = try await modify("update", [(id: "a", text: crowd[7].text)], as: "alice")
            #expect(!equal.contains("serverErrorCode"), "\(equal)")
        }
    }

    /// A condition that takes much memory is in the accounts even while it costs changes nothing.
    @Test func `an equal condition that moves to another zone joins no crowd that is full`()
        async throws
    {
        let settings = ["--limits-record-type-cost", "80"]
        try await RunningRelay.with(settings) { relay in
            func modify(
                _ kind: String, _ text: String, zone: String?, as user: String
            ) async throws -> String {
                guard
                    case .object(var body) = request(kind, [(id: "a", text: text)]),
                    case .array(let operations)? = body["operations"],
                    case .object(var operation)? = operations.first,
                    case .object(var subscription)? = operation["subscription"]
                else { return "no operation" }
                subscription["zoneID"] = zone.map { ["zoneName": .string($0)] }
                operation["subscription"] = .object(subscription)
                body["operations"] = [.object(operation)]
                let answer = try await relay.container.call(
                    "subscriptions/modify", .object(body), as: user, in: "public"
                ).expect(200)
                try await relay.relay.waitUntilSettled(within: .patience)
                return answer.text
            }
            let crowd = (0..<80).map { (id: "q\($0)", text: "artist = 'x' AND NOT price > \($0)") }
            let many = try await relay.container.call(
                "subscriptions/modify", request("create", crowd), as: "bob", in: "public"
            ).expect(200)
            #expect(!many.text.contains("serverErrorCode"), "\(many.text)")
            try await relay.relay.waitUntilSettled(within: .patience)
            let parts = (0..<40).map { "title LIKE[c] '*word \($0)*'" }
            let large = "artist = 'x' AND (" + parts.joined(separator: " OR ") + ")"
            let apart = try await modify("create", large, zone: "apart", as: "alice")
            #expect(!apart.contains("serverErrorCode"), "\(apart)")
            let again = try await modify("update", large, zone: "apart", as: "alice")
            #expect(!again.contains("serverErrorCode"), "\(again)")
            let moved = try await modify("update", large, zone: nil, as: "alice")
            #expect(moved.contains("same value"), "\(moved)")
        }
    }

    @Test func `the memory of conditions is limited for a user and for a container`()
        async throws
    {
        let settings = [
            "--limits-condition-megabytes-per-user", "1",
            "--limits-condition-megabytes-per-container", "2",
        ]
        try await RunningRelay.with(settings) { relay in
            // The condition is found by a value, so other changes do not pay for it; it takes about
            // 0.8 MB of memory.
            func heavy(_ name: String) -> String {
                let parts = (0..<400).map { "title LIKE[c] '\(name)\($0)'" }
                return "artist = 'artist \(name)' AND (" + parts.joined(separator: " OR ") + ")"
            }
            let (user, all) = (
                "limits.conditionMegabytesPerUser", "limits.conditionMegabytesPerContainer"
            )
            #expect(try await save(heavy("a"), "a", as: "alice", relay) == "saved")
            #expect(try await save(heavy("b"), "b", as: "alice", relay) == user)
            // The bound does not affect other users, nor ordinary conditions.
            #expect(try await save(heavy("c"), "c", as: "bob", relay) == "saved")
            #expect(try await save("artist = 'x'", "d", as: "alice", relay) == "saved")
            #expect(try await save(heavy("e"), "e", as: "carol", relay) == all)
            // Queries of connected clients share the same bound.
            let page = try await LiveScenarioTests.open(relay)
            try await page.send([
                "type": "set", "version": 1,
                "queries": [
                    [
                        "id": "q", "kind": "changes", "recordType": "Artwork",
                        "query": ["predicate": .string(heavy("g"))],
                    ]
                ],
            ])
            var state = ""
            while let frame = await page.frame("state") {
                state = JSONValue.object(frame).text
                if state.contains(user) || frame["state"] == "complete" { break }
            }
            #expect(state.contains(user), "\(state)")
            // Deleting a subscription frees its memory.
            let operation: JSONValue = [
                "operationType": "delete", "subscription": ["subscriptionID": "a"],
            ]
            let deletion: JSONValue = ["operations": [operation]]
            _ = try await relay.container.call(
                "subscriptions/modify", deletion, as: "alice", in: "public"
            ).expect(200)
            try await relay.relay.waitUntilSettled(within: .patience)
            #expect(try await save(heavy("a"), "h", as: "alice", relay) == "saved")
        }
    }

    /// Returns a request that saves conditions that no value finds.
    private func request(_ kind: String, _ conditions: [(id: String, text: String)]) -> JSONValue {
        let operations = conditions.map { condition -> JSONValue in
            [
                "operationType": .string(kind),
                "subscription": [
                    "subscriptionID": .string(condition.id), "subscriptionType": "query",
                    "query": ["recordType": "Artwork", "predicate": .string(condition.text)],
                    "firesOn": ["create"], "notificationInfo": ["alertBody": "new"],
                ],
            ]
        }
        return ["operations": .array(operations)]
    }

    /// Returns how many subscriptions of an answer were saved.
    ///
    /// The others must have exceeded a bound.
    private func saved(_ answer: JSONValue?) -> Int {
        guard case .array(let entries)? = answer else { return -1 }
        return entries.count { entry in
            guard case .object(let object) = entry else { return false }
            let isSaved = object["serverErrorCode"] == nil
            #expect(isSaved || entry.text.contains("limits.userCost"), "\(entry.text)")
            return isSaved
        }
    }

    @Test func `simultaneous saves are counted together`() async throws {
        var limits = RequestLimits()
        limits.costs.perUser = 4
        // Nothing is followed here, so everything that is saved stays in progress.
        try await TestRelay.with(limits: limits) { relay in
            func save(_ numbers: Range<Int>, as user: String) async throws -> Int {
                let conditions = numbers.map { (id: "q\($0)", text: "NOT price > \($0)") }
                let body = request("create", conditions).text
                let answer = try await relay.post("subscriptions/modify", body, user: user)
                return saved(answer["subscriptions"])
            }
            let many = try await save(0..<8, as: "_alice")
            let another = try await save(8..<9, as: "_alice")
            // The same conditions again add nothing, and another user's count for that user.
            let same = try await save(0..<4, as: "_alice")
            let others = try await save(0..<8, as: "_bob")
            #expect([many, another, same, others] == [4, 0, 4, 4])
        }
    }

    @Test func `a saved condition is counted once after the follower has it`() async throws {
        try await RunningRelay.with(["--limits-user-cost", "4"]) { relay in
            for round in 0..<6 {
                let conditions = (0..<2).map {
                    (id: "q\($0)", text: "NOT price > \(10 * round + $0)")
                }
                let body = request(round == 0 ? "create" : "update", conditions)
                let answer = try await relay.container.call(
                    "subscriptions/modify", body, as: "alice", in: "public"
                ).expect(200)
                #expect(saved(answer["subscriptions"]) == 2, "\(round)")
                try await relay.relay.waitUntilSettled(within: .patience)
            }
        }
    }

    @Test func `live queries count for the same limits as saved subscriptions`()
        async throws
    {
        let settings = ["--limits-user-cost", "4", "--limits-record-type-cost", "6"]
        try await RunningRelay.with(settings) { relay in
            for number in 0..<2 {
                #expect(
                    try await save("NOT price > \(number)", "q\(number)", as: "alice", relay)
                        == "saved")
            }
            let page = try await LiveScenarioTests.open(relay)
            // A set is accepted completely or not at all, and its queries are counted together.
            #expect(try await declare(1, 10..<13, on: page) == "limits.userCost")
            #expect(try await declare(1, 10..<12, on: page) == "complete")
            #expect(try await declare(2, 10..<12, on: page) == "complete")
            #expect(try await save("NOT price > 2", "q2", as: "alice", relay) == "limits.userCost")
            // The same query over another connection is the same group. Other queries are counted
            // in addition.
            let tab = try await LiveScenarioTests.open(relay)
            #expect(try await declare(1, 10..<12, on: tab) == "complete")
            #expect(try await declare(3, 20..<22, on: page) == "limits.userCost")
            #expect(try await declare(3, 10..<11, on: page) == "complete")
            #expect(try await declare(2, 10..<11, on: tab) == "complete")
            #expect(try await declare(4, 20..<22, on: page) == "limits.userCost")
            #expect(try await declare(4, 10..<12, on: page) == "complete")
            // Another user has a bound of their own, but the record type's bound is shared.
            let bob = try await LiveScenarioTests.open(relay, as: "bob")
            #expect(try await declare(1, 30..<33, on: bob) == "limits.recordTypeCost")
            #expect(try await declare(1, 30..<32, on: bob) == "complete")
            #expect(
                try await save("NOT price > 9", "q9", as: "carol", relay)
                    == "limits.recordTypeCost")
            // The queries of a closed connection no longer count.
            try await bob.close()
            #expect(
                try await Turns.yield {
                    try await save("NOT price > 9", "q9", as: "carol", relay) == "saved"
                })
        }
    }

    /// Declares queries of changes that no value finds, and returns what became of the set.
    private func declare(
        _ version: Int64, _ numbers: Range<Int>, on page: LiveConnection
    ) async throws -> String {
        let queries = numbers.map { number -> JSONValue in
            [
                "id": .string("q\(number)"), "kind": "changes", "recordType": "Artwork",
                "query": ["predicate": .string("NOT price > \(number)")],
            ]
        }
        try await page.send(
            ["type": "set", "version": .integer(version), "queries": .array(queries)])
        while let state = await page.frame("state") {
            let text = JSONValue.object(state).text
            for name in ["limits.predicateCost", "limits.userCost", "limits.recordTypeCost"]
            where text.contains(name) {
                return name
            }
            if state["state"] == "complete" { return "complete" }
            if state["state"] == "error" { return text }
        }
        return "closed"
    }

    /// A condition that is found by a value does not count, in whatever dialect it is written.
    @Test func `a user's limit is for conditions that no value finds, in every dialect`()
        async throws
    {
        try await RunningRelay.with(["--limits-user-cost", "3"]) { relay in
            let found: [JSONObject] = [
                ["rql": "artist == 'a#'"], ["rql": "price >= # AND price < #.5"],
                ["rql": "artist BEGINSWITH[c] 'name#'"], ["where": ["artist": ["$eq": "a#"]]],
                ["predicate": "artist = 'a#'"],
            ]
            for number in 0..<8 {
                for (place, condition) in found.enumerated() {
                    let text = JSONValue.object(condition).text.replacing("#", with: "\(number)")
                    let said = try await save(
                        JSONValue(parsing: text), "f\(place)-\(number)", as: "alice", relay)
                    #expect(said == "saved", "\(text)")
                }
            }
            let others: [JSONObject] = [
                ["rql": "NOT artist == 'x'"], ["where": ["artist": ["$ne": "x"]]],
                ["rql": "price + 1 > 2"],
            ]
            var answers: [String] = []
            for (place, condition) in others.enumerated() {
                answers.append(
                    try await save(.object(condition), "u\(place)", as: "alice", relay))
            }
            #expect(answers == ["saved", "saved", "limits.userCost"])
            let one: JSONValue = ["rql": "artist == 'another'"]
            #expect(try await save(one, "last", as: "alice", relay) == "saved")
        }
    }

    /// Saves a subscription, waits until the follower has it, and returns the outcome.
    private func save(
        _ predicate: String, _ id: String, as user: String, _ relay: RunningRelay
    ) async throws -> String {
        try await save(["predicate": .string(predicate)], id, as: user, relay)
    }

    private func save(
        _ condition: JSONValue, _ id: String, as user: String, _ relay: RunningRelay
    ) async throws -> String {
        let body = try JSONValue(parsing: Self.create(id, condition: condition))
        let reply = try await relay.container.call(
            "subscriptions/modify", body, as: user, in: "public"
        ).expect(200)
        let names = [
            "limits.predicateCost", "limits.userCost", "limits.recordTypeCost",
            "limits.conditionMegabytesPerUser", "limits.conditionMegabytesPerContainer",
        ]
        for name in names where reply.text.contains(name) { return name }
        guard !reply.text.contains("serverErrorCode") else { return reply.text }
        try await relay.relay.waitUntilSettled(within: .patience)
        return "saved"
    }
}
