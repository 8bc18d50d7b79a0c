import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// The operator's lists: newest first, filtered by names, and read page by page.
@Suite struct ListScenarioTests {
    private static let container = "containers/iCloud.com.example.Art/development"

    private static func list(_ answer: TestRelay.Answer, _ name: String) -> [JSONValue] {
        guard case .array(let rows)? = answer[name] else { return [] }
        return rows
    }

    private static func append(
        _ relay: TestRelay, _ records: [(type: String, name: String)]
    )
        async throws
    {
        for record in records {
            var change = RecordChange(
                .update, of: known(record.type), RecordID(recordName: known(record.name)))
            change.after = RecordImage(["n": .integer(1)])
            _ = try await relay.store.append(
                [ChangeToAppend(change, key: nil)], delivery: nil,
                container: TestRelay.container, source: known("db"), at: TestRelay.now)
        }
    }

    private static func positions(
        _ relay: TestRelay, _ path: String, _ member: String
    ) async throws -> [String] {
        let answer = try await relay.admin(.get, path)
        #expect(answer.status == 200, "\(answer.text)")
        return list(answer, member).compactMap { row in
            guard case .string(let position)? = row.value(at: ["position"]) else { return nil }
            return position
        }
    }

    @Test func `changes are found by record, and a single one is shown`() async throws {
        try await TestRelay.with { relay in
            try await Self.append(relay, [("A", "x"), ("B", "x"), ("A", "y"), ("A", "x")])
            func found(_ query: String) async throws -> [String] {
                try await Self.positions(relay, "\(Self.container)/changes\(query)", "changes")
            }
            #expect(try await found("") == ["4", "3", "2", "1"])
            #expect(try await found("?limit=2&before=4") == ["3", "2"])
            #expect(try await found("?recordType=A") == ["4", "3", "1"])
            #expect(try await found("?record=x") == ["4", "2", "1"])
            #expect(try await found("?record=x&recordType=B") == ["2"])
            #expect(try await found("?state=stale") == [])
            #expect(try await found("?source=other") == [])
            #expect(try await found("?after=2") == ["3", "4"])
            let shown = try await relay.admin(.get, "\(Self.container)/changes/3")
            #expect(shown.json.value(at: ["change", "name"]) == "y", "\(shown.text)")
            #expect(shown["settled"] == false)
            for (path, status) in [
                ("/changes/9", 404), ("/changes/x", 400), ("/changes?state=no", 400),
                ("/changes?before=1&after=2", 400), ("/changes?after=1&source=db", 400),
            ] {
                let answer = try await relay.admin(.get, Self.container + path)
                #expect(answer.status == status, "\(path): \(answer.text)")
            }
        }
    }

    @Test func `deliveries are found by user, device and record, with their names`() async throws {
        try await TestRelay.with { relay in
            try await Self.append(relay, [("A", "x"), ("B", "y")])
            var devices: [DeviceVersion] = []
            for (index, user) in ["_alice", "_bob"].enumerated() {
                devices.append(
                    try await relay.store.register(
                        Device(
                            id: known("phone"), container: TestRelay.container,
                            owner: known(user), gatewayEnvironment: .development,
                            token: known(String(repeating: "a\(index)", count: 32))),
                        at: TestRelay.now))
            }
            var step = SettledStep(from: .start, to: .start)
            step.receipts = (0..<6).map { index in
                DeliveryReceipt(
                    deliveryID: Fixtures.delivery(at: UInt64(index + 1)).delivery.id,
                    ordinal: DeliveryOrdinal(
                        position: LogPosition(UInt64(index % 2 + 1)), offset: 0),
                    subscriptionSerial: 9, deviceSerial: devices[index % 2].serial,
                    outcome: .accepted, status: 200, reason: "", attempt: 1,
                    at: TestRelay.now.advanced(by: .seconds(index)))
            }
            try await relay.store.settle(step)
            func users(_ path: String) async throws -> [JSONValue?] {
                let answer = try await relay.admin(.get, path)
                #expect(answer.status == 200, "\(answer.text)")
                return Self.list(answer, "deliveries").map { $0.value(at: ["userRecordName"]) }
            }
            let own = "\(Self.container)/deliveries"
            #expect(try await Self.positions(relay, own, "deliveries").count == 6)
            #expect(
                try await Self.positions(relay, "\(own)?user=_bob", "deliveries")
                    == ["2", "2", "2"])
            #expect(
                try await Self.positions(relay, "\(own)?record=x&recordType=A", "deliveries")
                    == ["1", "1", "1"])
            #expect(
                try await Self.positions(relay, "\(own)?user=_alice&device=tablet", "deliveries")
                    == [])
            let page = try await relay.admin(.get, "\(own)?limit=4")
            guard case .string(let before)? = page["before"] else {
                Issue.record("\(page.text)")
                return
            }
            #expect(
                try await Self.positions(relay, "\(own)?before=\(before)", "deliveries")
                    == ["2", "1"])
            let first = Self.list(page, "deliveries").first
            #expect(first?.value(at: ["deviceID"]) == "phone")
            #expect(try await users("deliveries").count == 6)
            for (path, sentence) in [
                ("deliveries?user=_bob", "container: is required with user and record"),
                ("deliveries?environment=development", "environment: must be given together with"),
                ("receipts?container=-", "container: \"-\" is not a container identifier"),
                ("\(own)?device=phone", "user: is required with subscription or device"),
                ("\(own)?before=x", "before: \"x\" is not a place in this list"),
                ("\(own)?recordType=A", "record: is required with recordType"),
                (
                    "\(Self.container)/retries?before=1.x",
                    "before: \"x\" is not a place in this list"
                ),
            ] {
                let answer = try await relay.admin(.get, path)
                #expect(answer.status == 400, "\(answer.text)")
                #expect(answer.text.contains(quoted(sentence)), "\(answer.text)")
            }
        }
    }

    @Test func `a container alone narrows the lists of all containers`() async throws {
        try await TestRelay.with { relay in
            let other = "iCloud.com.example.Other"
            let created = try await relay.admin(
                .put, "containers/\(other)/development", #"{"topics":["com.example.Other"]}"#)
            #expect(created.status == 201, "\(created.text)")
            try await Self.append(relay, [("A", "x")])
            let device = try await relay.store.register(
                Device(
                    id: known("phone"), container: TestRelay.container, owner: known("_alice"),
                    gatewayEnvironment: .development,
                    token: known(String(repeating: "a0", count: 32))), at: TestRelay.now)
            var step = SettledStep(from: .start, to: .start)
            step.receipts = [
                DeliveryReceipt(
                    deliveryID: Fixtures.delivery(at: 1).delivery.id,
                    ordinal: DeliveryOrdinal(position: LogPosition(1), offset: 0),
                    subscriptionSerial: 9, deviceSerial: device.serial, outcome: .accepted,
                    status: 200, reason: "", attempt: 1, at: TestRelay.now)
            ]
            try await relay.store.settle(step)
            for list in ["deliveries", "receipts"] {
                func found(_ query: String) async throws -> [String] {
                    try await Self.positions(relay, "\(list)\(query)", list)
                }
                #expect(try await found("") == ["1"])
                #expect(try await found("?container=iCloud.com.example.Art") == ["1"])
                #expect(try await found("?container=\(other)") == [])
                let unknown = try await relay.admin(.get, "\(list)?container=\(other)2")
                #expect(unknown.status == 404, "\(unknown.text)")
            }
        }
    }

    /// Returns a text as it appears in JSON.
    private func quoted(_ text: String) -> String { text.replacing("\"", with: "\\\"") }
}
