import HTTPTypes
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Lists over HTTP: a page has a limit in bytes, and says how to continue.
@Suite struct PageScenarioTests {
    private static let admin = "containers/iCloud.com.example.Art/development"

    /// Creates records of 900 kB in the default zone or in a zone of the user's.
    private static func fill(_ relay: TestRelay, zone: String?, _ count: Int) async throws {
        let text = String(repeating: "x", count: 900_000)
        let place = zone.map { #""zoneID":{"zoneName":"\#($0)"},"# } ?? ""
        for number in 1...count {
            let answer = try await relay.post(
                "records/modify",
                #"{\#(place)"operations":[{"operationType":"create","record":{"recordName":"#
                    + #""r\#(number)","recordType":"Art","fields":{"t":{"value":"\#(text)"}}}}]}"#,
                database: "private")
            #expect(answer.status == 200)
        }
    }

    private static func list(_ answer: TestRelay.Answer, _ name: String) -> [JSONObject] {
        guard case .array(let elements)? = answer[name] else { return [] }
        return elements.compactMap { if case .object(let object) = $0 { object } else { nil } }
    }

    @Test func `a look-up of many large records returns as many as fit`() async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, zone: nil, 7)
            let names = (1...7).map { #""r\#($0)""# }.joined(separator: ",")
            let answer = try await relay.post(
                "records/lookup", #"{"records":[\#(names)]}"#, database: "private")
            let entries = Self.list(answer, "records")
            #expect(entries.filter { $0["fields"] != nil }.count == 5)
            #expect(
                entries.suffix(2).map { $0["serverErrorCode"] }
                    == ["QUOTA_EXCEEDED", "QUOTA_EXCEEDED"])
            #expect(answer.text.utf8.count < 6_000_000)
        }
    }

    @Test func `a record that is named many times is returned as often as it fits`() async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, zone: nil, 1)
            let names = Array(repeating: #"{"recordName":"r1"}"#, count: 199).joined(separator: ",")
            let answer = try await relay.post(
                "records/lookup", #"{"records":["absent",\#(names)]}"#, database: "private")
            let entries = Self.list(answer, "records")
            #expect(entries.count == 200)
            #expect(entries.filter { $0["fields"] != nil }.count == 5)
            #expect(entries.first?["serverErrorCode"] == "NOT_FOUND")
            #expect(entries.suffix(194).allSatisfy { $0["serverErrorCode"] == "QUOTA_EXCEEDED" })
            #expect(answer.text.utf8.count < 6_000_000)
        }
    }

    @Test(arguments: [("update", "CONFLICT"), ("create", "EXISTS")])
    func `refusals show as many records as fit`(operation: String, code: String) async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, zone: nil, 7)
            let operations = (1...7).map {
                RecordScenarioTests.operation(
                    operation,
                    #"{"recordName":"r\#($0)","recordType":"Art","recordChangeTag":"zz"}"#)
            }
            let answer = try await relay.post(
                "records/modify", #"{"operations":[\#(operations.joined(separator: ","))]}"#,
                database: "private")
            let entries = Self.list(answer, "records")
            #expect(
                entries.map { $0["serverErrorCode"] } == Array(repeating: .string(code), count: 7))
            #expect(entries.filter { $0["serverRecord"] != nil }.count == 5)
            #expect(answer.text.utf8.count < 6_000_000)
        }
    }

    @Test func `the zones of one request share a page, and each continues from its token`()
        async throws
    {
        try await TestRelay.with { relay in
            for zone in ["a", "b"] {
                _ = try await relay.post(
                    "zones/modify",
                    #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"#
                        + #""\#(zone)"}}}]}"#, database: "private")
                try await Self.fill(relay, zone: zone, 4)
            }
            var tokens: [String: String] = [:]
            var counts = ["a": 0, "b": 0]
            for _ in 0..<10 {
                let zones = ["a", "b"].map { zone in
                    let token = tokens[zone].map { #","syncToken":"\#($0)""# } ?? ""
                    return #"{"zoneID":{"zoneName":"\#(zone)"}\#(token)}"#
                }
                let answer = try await relay.post(
                    "changes/zone", #"{"zones":[\#(zones.joined(separator: ","))]}"#,
                    database: "private")
                #expect(answer.text.utf8.count < 6_000_000)
                var isMoreComing = false
                for (zone, entry) in zip(["a", "b"], Self.list(answer, "zones")) {
                    if case .array(let records)? = entry["records"] {
                        counts[zone, default: 0] += records.count
                    }
                    if case .string(let token)? = entry["syncToken"] { tokens[zone] = token }
                    if entry["moreComing"] == true { isMoreComing = true }
                }
                if !isMoreComing { break }
            }
            #expect(counts == ["a": 4, "b": 4])
        }
    }

    @Test func `subscriptions beyond a page come with a marker`() async throws {
        try await TestRelay.with { relay in
            let owner = SubscriptionOwner(
                container: TestRelay.container, database: .public, user: known("_alice"))
            let edits = (0..<24).map { number in
                let text = String(repeating: "\(number % 10)", count: 220_000) + "\(number)"
                let query = SubscriptionQuery(
                    recordType: known("Art"), form: .predicate, source: "a == %@",
                    arguments: [.string(text)], canonical: "a == \"\(text)\"")
                return SubscriptionEdit.create(
                    Subscription(
                        id: known("s\(number)"), container: owner.container,
                        database: owner.database, owner: owner.user,
                        scope: .query(query, zoneID: nil), firesOn: [.create],
                        firesOnce: false, notificationInfo: NotificationInfo()))
            }
            _ = try await relay.store.edit(
                edits, of: owner, atomicity: .independent, at: TestRelay.now)
            let first = try await relay.post("subscriptions/list", "{}")
            let firstPage = Self.list(first, "subscriptions")
            guard case .string(let marker)? = first["continuationMarker"] else {
                Issue.record("there is no marker")
                return
            }
            let second = try await relay.post(
                "subscriptions/list", #"{"continuationMarker":"\#(marker)"}"#)
            let secondPage = Self.list(second, "subscriptions")
            #expect(!firstPage.isEmpty && firstPage.count < 24)
            let ids = (firstPage + secondPage).map { $0["subscriptionID"]?.text ?? "" }
            #expect(Set(ids).count == firstPage.count + secondPage.count)
            let wrong = try await relay.post(
                "subscriptions/list", #"{"continuationMarker":"?"}"#)
            #expect(wrong.status == 400)
        }
    }

    /// A reader of pages whose marker was not understood would get the first page again and again.
    @Test(
        arguments: ["subscriptions/list", "zones/list"],
        [
            #"{"continuationMarker":"#, #"{"continuationMarker":"a","continuationMarker":"a"}"#,
            "[]", "true",
        ])
    func `the body of a list is a JSON object or empty`(path: String, body: String) async throws {
        try await TestRelay.with { relay in
            let refused = try await relay.post(path, body, database: "private")
            #expect(refused.status == 400, "\(refused.text)")
            for allowed in ["", "{}", #"{"other":1}"#] {
                let answer = try await relay.post(path, allowed, database: "private")
                #expect(answer.status == 200, "\(answer.text)")
            }
        }
    }

    @Test func `changes of the log and parked changes are listed in pages`() async throws {
        try await TestRelay.with { relay in
            try await Self.fill(relay, zone: nil, 7)
            let first = try await relay.admin(.get, "\(Self.admin)/changes?limit=100")
            #expect((3...6).contains(Self.list(first, "changes").count))
            guard case .string(let before)? = first["before"] else {
                Issue.record("there is no before")
                return
            }
            let second = try await relay.admin(
                .get, "\(Self.admin)/changes?limit=100&before=\(before)")
            #expect(
                Self.list(first, "changes").count + Self.list(second, "changes").count == 7)
            #expect(second["before"] == nil)
            let oldest = try await relay.admin(.get, "\(Self.admin)/changes?limit=1&after=0")
            #expect(oldest["after"] == "1")
            for number in 1...3 as ClosedRange<Int64> {
                _ = try await relay.store.park(
                    ParkedChange(
                        container: TestRelay.container, source: known("s"), reason: "r",
                        path: "", body: Array(repeating: UInt8(48 + number), count: 3_000_000),
                        headers: [:], receivedAt: TestRelay.now))
            }
            let parked = try await relay.admin(.get, "\(Self.admin)/changes/parked?limit=100")
            #expect(Self.list(parked, "parked").count == 2)
            #expect(parked["before"] == "2")
            let rest = try await relay.admin(
                .get, "\(Self.admin)/changes/parked?limit=100&before=2")
            #expect(Self.list(rest, "parked").count == 1)
            let parkedFirst = try await relay.admin(
                .get, "\(Self.admin)/changes/parked?limit=100&after=0")
            #expect(Self.list(parkedFirst, "parked").count == 2 && parkedFirst["after"] == "2")
        }
    }
}
