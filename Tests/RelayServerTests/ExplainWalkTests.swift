import GatewaySimulator
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Synchronization
import Testing

@testable import RelayServer

/// Compares explain with the pushes that were really sent.
///
/// It does so for every change, subscription and device of random histories.
@Suite(.serialized, .timeLimit(.minutes(30))) struct ExplainWalkTests {
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `explain agrees with the walk on every change`(seed: UInt64) async throws {
        // One device's token dies now and then, and one push is answered late.
        let script = AnswerScript([
            ScriptRule(
                .device(SampleDevice(name: "tablet", owner: "alice").token),
                [
                    ScriptedAnswer(.accept, times: 4),
                    ScriptedAnswer(
                        .refuse(.init(status: 410, reason: "Unregistered")), times: 1),
                    ScriptedAnswer(.accept, times: 6),
                    ScriptedAnswer(
                        .refuse(.init(status: 400, reason: "BadExpirationDate")), times: 1),
                ])
        ])
        // With one seed, every change that fires several subscriptions goes to a range.
        let settings =
            ["--queries-seconds", "3600"] + (seed == 3 ? ["--fanout-range-threshold", "1"] : [])
        try await RunningRelay.with(settings, script: script) { relay in
            var history = RandomHistory(seed: seed, relay: relay)
            // Alice's phone is connected, and sees changes in the public database.
            let page = try await LiveScenarioTests.open(relay, on: "phone")
            page.answersPings.withLock { $0 = true }
            try await page.send([
                "type": "set", "version": 1,
                "queries": [["id": "q", "kind": "changes", "recordType": "Artwork"]],
            ])
            let reader = Task { while await page.frame() != nil {} }
            try await history.run(steps: 130)
            try await relay.relay.waitUntilSettled(within: .patience)
            // Ranges are worked beside the progress.
            while try await relay.relay.store.backlog().ranges > 0 {}
            try await relay.waitUntilNothingMoves(retries: .seconds(60))
            try await page.close()
            await reader.value
            let sent = Set(relay.gateway.simulated.pushes.map(\.apnsID))
            let (arrived, opened) = try await history.markSome(relay.gateway.simulated.pushes)
            let first = try await history.explainAll()
            first.expect(sent)
            #expect(!arrived.isEmpty && !opened.isEmpty)
            #expect(arrived.subtracting(first.arrived) == [], "it came, and is not explained so")
            #expect(opened.subtracting(first.opened) == [])
            // Folded deliveries arrive, and are opened, with the push that told them.
            #expect(first.arrived.subtracting(arrived).subtracting(first.folded) == [])
            #expect(first.opened.subtracting(opened).subtracting(first.folded) == [])
            try await history.expectHealth(as: first)
            #expect(
                first.deciding.isSuperset(of: [
                    "appended", "active", "operation", "zone", "recordType", "readRule",
                    "predicate", "transition", "devices", "origin", "registered", "attempt",
                ]), "\(first.deciding.sorted())")
            #expect(first.deciding.contains("held"), "\(first.deciding.sorted())")
            #expect(
                first.standings.isSuperset(of: ["delivered", "waiting", "dead", "leftOut", "seen"]),
                "\(first.standings.sorted())")
            for account in try await relay.relay.store.accounts() {
                #expect(account.difference == 0)
                #expect(account.seen == first.seen.count)
                #expect(account.folded == first.folded.count)
            }
            // Deliveries that were seen or folded were not sent themselves.
            #expect(first.seen.union(first.folded).intersection(sent) == [])
            // Ended versions stay explainable after the walk's own rows are pruned.
            _ = try await relay.relay.store.pruneEndedVersions(upTo: .init(.max))
            let second = try await history.explainAll()
            second.expect(sent)
            let differ = second.verdicts.filter { first.verdicts[$0.key] != $0.value }.keys.sorted()
            #expect(differ == [])
            #expect(second.verdicts.count == first.verdicts.count)
        }
    }
}

/// The explanations of a whole history.
struct ExplainedHistory {
    /// The deliveries that reached the gateway, according to explain.
    var reached: Set<String> = []
    /// The verdict on each change and subscription.
    var verdicts: [String: String] = [:]
    /// The steps that decided the verdicts.
    var deciding: Set<String> = []
    /// The final states of deliveries, and the deliveries that were seen or folded into another
    /// push.
    var standings: Set<String> = []
    var seen: Set<String> = []
    var folded: Set<String> = []
    /// The deliveries that a client reported as delivered, and as opened.
    var arrived: Set<String> = []
    var opened: Set<String> = []
    /// How often each version of a subscription fired, and how often it reached no device.
    var fired: [String: Int] = [:]
    var unreached: [String: Int] = [:]
    /// Contradictions, one in each line.
    var problems: [String] = []

    /// Compares with the deliveries that the gateway received.
    func expect(_ sent: Set<String>) {
        #expect(problems == [])
        #expect(sent.subtracting(reached) == [], "sent, and not explained")
        #expect(reached.subtracting(sent) == [], "explained as sent, and was not")
        #expect(!sent.isEmpty)
    }

    /// Adds the explanation of one change and subscription.
    mutating func add(_ explanation: JSONValue) {
        func text(_ name: String) -> String {
            if case .string(let text)? = explanation.value(at: [name]) { text } else { "" }
        }
        let place = "\(text("position")) \(text("userRecordName")) \(text("subscriptionID"))"
        verdicts[place] = text("verdict")
        deciding.insert(text("step"))
        if text("sentence").isEmpty { problems.append("\(place): no sentence") }
        if text("sentence").contains("the relay's own matching") { problems.append(place) }
        if text("verdict") == "fired" { fired[text("serial"), default: 0] += 1 }
        guard case .array(let devices)? = explanation.value(at: ["devices"]) else {
            if text("verdict") == "fired" { unreached[text("serial"), default: 0] += 1 }
            return
        }
        let isReached = devices.contains { $0.value(at: ["deliveryID"]) != nil }
        if text("verdict") == "fired", !isReached { unreached[text("serial"), default: 0] += 1 }
        if text("verdict") != "fired" { problems.append("\(place): devices, and did not fire") }
        for device in devices {
            if case .string(let step)? = device.value(at: ["step"]) { deciding.insert(step) }
            if case .string(let word)? = device.value(at: ["standing"]) { standings.insert(word) }
            guard case .string(let delivery)? = device.value(at: ["deliveryID"]) else { continue }
            let standing = device.value(at: ["standing"])
            guard case .array(let steps)? = device.value(at: ["steps"]) else { continue }
            let isSent = steps.contains { step in
                guard case .integer(let status)? = step.value(at: ["facts", "status"]) else {
                    return false
                }
                return status != 0 && step.value(at: ["step"]) == "attempt"
            }
            if isSent { reached.insert(delivery) }
            if standing == "seen" { seen.insert(delivery) }
            // The delivery that told about the others was sent itself.
            if standing == "folded" { folded.insert(delivery) }
            if steps.contains(where: { $0.value(at: ["step"]) == "delivered" }) {
                arrived.insert(delivery)
            }
            if steps.contains(where: { $0.value(at: ["step"]) == "opened" }) {
                opened.insert(delivery)
            }
            if standing == "delivered", !isSent { problems.append("\(place): \(delivery)") }
            if standing == "cannotTell" || standing == "owed" {
                problems.append("\(place): \(delivery) is \(standing?.text ?? "")")
            }
        }
    }
}

/// A random history of subscriptions, devices and changes.
struct RandomHistory {
    private var random: SeededGenerator
    private let relay: RunningRelay
    private var names = 0
    private var versions = 0
    /// Every subscription that ever existed.
    private(set) var subscriptions: [(user: String, database: String, id: String)] = []
    /// How many of them, from the first on, are never edited.
    private var kept = 0
    private var positions: [String] = []

    /// Whether devices stay as they are, and every push shows something.
    var isPlain = false

    init(seed: UInt64, relay: RunningRelay) {
        random = SeededGenerator(seed: seed)
        self.relay = relay
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &random)]
    }

    /// Takes `steps` random steps one after the other.
    mutating func run(steps: Int) async throws {
        if !isPlain { try await keepSome() }
        for _ in 0..<4 { try await save() }
        for step in 0..<steps {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<15: try await save()
            case 15..<20: try await replace()
            case 20..<25: try await delete()
            case 25..<33 where !isPlain: try await editDevice()
            default: try await change()
            }
            // Now and then the walk catches up, so that dead tokens take effect.
            if step.isMultiple(of: 10) {
                try await relay.relay.waitUntilSettled(within: .patience)
            }
        }
    }

    // MARK: Subscriptions

    private static let predicates = [
        "price < 100", "artist = \"artist-1\"", "artist = \"artist-1\" AND price >= 50",
        "price < 50 OR title = \"x\"", "NOT price > 30", "title = nil", "price > title",
        "modificationDate > CAST(0, \"NSDate\")",
    ]

    private mutating func save() async throws {
        names += 1
        let user = pick(["alice", "alice", "bob"])
        let database = random.chance(25) ? "private" : "public"
        let id = "s\(names)"
        subscriptions.append((user, database, id))
        try await modify("create", subscription(id), user, database)
    }

    /// Saves subscriptions that always hold pushes back.
    ///
    /// One is paused and never resumed; one waits until a connection has told the device.
    private mutating func keepSome() async throws {
        for (id, operations, members) in [
            ("paused", ["create", "update"], ["paused": true]),
            ("seen", ["create", "update", "delete"], ["unlessConnected": true]),
        ] as [(String, [String], JSONObject)] {
            subscriptions.append(("alice", "public", id))
            try await modify(
                "create", .query(id, nil, firesOn: operations, adding: members), "alice", "public")
        }
        kept = subscriptions.count
    }

    private mutating func replace() async throws {
        let (user, database, id) = pick(Array(subscriptions.dropFirst(kept)))
        try await modify("update", subscription(id), user, database)
    }

    private mutating func delete() async throws {
        let (user, database, id) = pick(Array(subscriptions.dropFirst(kept)))
        try await modify("delete", ["subscriptionID": .string(id)], user, database)
    }

    private mutating func subscription(_ id: String) -> JSONValue {
        var members: JSONObject = ["suppress": .string(pick(["device", "device", "user", "none"]))]
        var info: JSONObject = ["alertBody": .string("New \(id)")]
        if random.chance(20), !isPlain { info = ["shouldSendContentAvailable": true] }
        if random.chance(15) { info["shouldBadge"] = true }
        let asksForLess = random.chance(50) && !isPlain
        if asksForLess { askForLess(&members) }
        if random.chance(20) { members["urgent"] = true }
        if random.chance(20) {
            members["subscriptionType"] = "zone"
            members["zoneID"] = ["zoneName": .string(pick(["_defaultZone", "gallery"]))]
            members["notificationInfo"] = .object(info)
            members["subscriptionID"] = .string(id)
            return .object(members)
        }
        if random.chance(15), !asksForLess { members["firesOnce"] = true }
        if random.chance(35) {
            members["firesWhen"] = .string(pick(["entered", "left", "stayed"]))
        }
        if random.chance(20) { members["changedKeys"] = [.string(pick(["price", "title"]))] }
        if random.chance(15) { members["zoneID"] = ["zoneName": "gallery"] }
        var operations = ["create", "update", "delete"].filter { _ in random.chance(60) }
        if operations.isEmpty || members["firesWhen"] != nil || members["changedKeys"] != nil {
            operations = ["create", "update"]
        }
        return .query(
            id, random.chance(85) ? pick(Self.predicates) : nil, firesOn: operations, info: info,
            adding: members)
    }

    /// Adds random limits to a subscription, each of which may occur alone.
    private mutating func askForLess(_ members: inout JSONObject) {
        if random.chance(25) { members["paused"] = true }
        if random.chance(25) {
            members["digest"] = ["seconds": .integer(pick([1, 1, 86_400]))]
        }
        if random.chance(25) {
            members["throttle"] = [
                "pushes": .integer(pick([1, 2])), "seconds": .integer(86_400),
            ]
        }
        if random.chance(25) { members["unlessConnected"] = true }
        if random.chance(25) {
            // It expires at some time between the changes of the subscription.
            let span = Int.random(in: 50...3000, using: &random)
            let end = World.real.now().advanced(by: .milliseconds(span))
            members["expiresAt"] = .integer(end.milliseconds)
        }
    }

    private func modify(
        _ operation: String, _ subscription: JSONValue, _ user: String, _ database: String
    ) async throws {
        // The edit may be refused as a duplicate, and then has no effect.
        _ = try await relay.container.call(
            "subscriptions/modify",
            [
                "operations": [
                    ["operationType": .string(operation), "subscription": subscription]
                ]
            ], as: user, in: database
        ).expect(200)
    }

    // MARK: Devices

    private mutating func editDevice() async throws {
        let device = pick(SampleDevice.usual)
        if random.chance(70) {
            var body: JSONObject = [
                "apnsToken": .string(device.token), "apnsEnvironment": "development",
                "deviceID": .string(device.name),
            ]
            // Members that a registration omits keep their value.
            if random.chance(40) {
                body["quietHours"] =
                    random.chance(40) ? KindnessScenarioTests.quietNow() : .null
            }
            if random.chance(50) { body["unlessConnected"] = .bool(random.chance(60)) }
            _ = try await relay.container.call(
                "tokens/register", .object(body), as: device.owner, in: nil
            ).expect(200)
        } else {
            _ = try await relay.container.call(
                "tokens/unregister",
                [
                    "apnsToken": .string(device.token),
                    "apnsEnvironment": "development",
                ], as: device.owner, in: nil)
        }
    }

    // MARK: Changes

    private mutating func fields() -> JSONObject {
        var fields: JSONObject = [:]
        if random.chance(90) {
            fields["price"] = .integer(Int64.random(in: 0..<150, using: &random))
        }
        if random.chance(80) { fields["artist"] = .string(pick(["artist-1", "artist-2"])) }
        if random.chance(50) { fields["title"] = .string(pick(["x", "y"])) }
        return fields
    }

    private mutating func change() async throws {
        names += 1
        let operation = pick(["create", "update", "update", "delete"])
        var members: JSONObject = [:]
        if operation == "update" {
            if random.chance(80) { members["before"] = .object(fields()) }
            if random.chance(20) { members["beforeCompleteness"] = "partial" }
            if random.chance(20) { members["changedKeys"] = [.string(pick(["price", "title"]))] }
        }
        if members["before"] == nil { members["beforeCompleteness"] = nil }
        if operation != "delete", random.chance(10) { members["afterCompleteness"] = "partial" }
        if random.chance(20) { members["zoneID"] = "gallery" }
        if random.chance(8) { members["recordType"] = "Artist" }
        if random.chance(20), operation == "create" { members["snapshot"] = true }
        if random.chance(40) {
            var origin: JSONObject = ["deviceID": .string(pick(["phone", "tablet", "bobs", "x"]))]
            if random.chance(60) { origin["userRecordName"] = .string(pick(["alice", "bob"])) }
            members["origin"] = .object(origin)
        }
        if random.chance(25) {
            members["database"] = "private"
            members["owner"] = .string(pick(["alice", "bob"]))
        } else if random.chance(20) {
            members["readers"] = .array([.string(pick(["alice", "bob", "world"]))])
        }
        if random.chance(20) {
            versions += 1
            members["version"] = .integer(Int64.random(in: 0..<10, using: &random))
        }
        let name = random.chance(30) ? pick(["r1", "r2"]) : "r\(names)"
        let reply = try await relay.container.post(
            .change(operation, name, fields(), adding: members))
        guard case .array(let results)? = reply["results"] else { return }
        for result in results {
            if case .string(let position)? = result.value(at: ["position"]) {
                positions.append(position)
            }
        }
    }

    // MARK: What clients say

    /// Reports some pushes as delivered or opened, as clients would; returns which.
    mutating func markSome(
        _ pushes: [ReceivedPush]
    ) async throws -> (arrived: Set<String>, opened: Set<String>) {
        var arrived: Set<String> = []
        var opened: Set<String> = []
        for push in pushes where random.chance(40) {
            let device = SampleDevice.usual.first { $0.token == push.deviceToken }
            guard let device else { continue }
            let isOpened = random.chance(30)
            let seq = try JSONValue(stored: push.payload).value(at: ["belfry", "seq"])
            var item: JSONObject = ["deliveryID": .string(push.apnsID)]
            if random.chance(50) { item["position"] = seq }
            let reply = try await relay.container.call(
                "notifications/mark\(isOpened ? "Opened" : "Delivered")",
                ["notifications": [.object(item)]], as: device.owner, in: nil
            ).expect(200)
            guard reply["notifications", "0", "isDelivered"] == true else {
                throw UnexpectedReply(reply)
            }
            arrived.insert(push.apnsID)
            if isOpened { opened.insert(push.apnsID) }
        }
        return (arrived, opened)
    }

    // MARK: How subscriptions fared

    /// Compares the health in the list of active subscriptions with the explanations.
    func expectHealth(as explained: ExplainedHistory) async throws {
        let reply = try await relay.client.administer(
            "GET", "\(relay.container.path)/subscriptions?limit=1000"
        ).expect(200)
        guard case .array(let entries)? = reply["subscriptions"] else {
            throw UnexpectedReply(reply)
        }
        #expect(!entries.isEmpty)
        for entry in entries {
            guard case .string(let serial)? = entry.value(at: ["serial"]) else { continue }
            func number(_ path: [String]) -> Int64 {
                guard case .integer(let number)? = entry.value(at: ["health"] + path) else {
                    return 0
                }
                return number
            }
            #expect(
                number(["fired"]) == Int64(explained.fired[serial] ?? 0), "\(entry.text)")
            #expect(
                number(["unreached", "count"]) == Int64(explained.unreached[serial] ?? 0),
                "\(entry.text)")
        }
    }

    // MARK: Questions

    /// Asks about every change and every subscription that ever existed.
    func explainAll() async throws -> ExplainedHistory {
        var found = ExplainedHistory()
        for position in Set(positions) {
            for (user, database, id) in subscriptions {
                let reply = try await relay.client.administer(
                    "GET",
                    "\(relay.container.path)/explain?position=\(position)&subscription=\(id)"
                        + "&user=\(user)&database=\(database)")
                // A change of the other database does not exist for the subscription.
                guard reply.status == 200 else {
                    if !reply.text.contains("no subscription") {
                        found.problems.append(reply.text)
                    }
                    continue
                }
                guard case .array(let explanations)? = reply["explanations"],
                    let explanation = explanations.first
                else {
                    found.problems.append(reply.text)
                    continue
                }
                found.add(explanation)
            }
        }
        return found
    }
}
