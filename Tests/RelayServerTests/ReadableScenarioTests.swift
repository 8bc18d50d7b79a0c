import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import Testing

@testable import StorageSQL
@testable import StorageSQLite

/// Everything that is accepted over HTTP can be listed and read again from the file.
@Suite struct ReadableScenarioTests {
    private static let container = "containers/iCloud.com.example.Art/development"
    private static let secretHeader = ["X-Secret": "secret-secret-secret"]

    private static func makeSource(_ relay: TestRelay) async throws {
        let made = try await relay.admin(
            .put, container + "/sources/app",
            #"{"preset":"belfry","onUnmappable":"park","verification":{"scheme":"header","#
                + #""header":"X-Secret","secrets":[{"secret":"secret-secret-secret"}]}}"#)
        #expect(made.status == 201, "\(made.text)")
    }

    private static func post(
        _ relay: TestRelay, _ body: String
    ) async throws -> TestRelay.Answer {
        try await relay.call(
            .post, "/changes/1/iCloud.com.example.Art/development/app", headers: secretHeader,
            body: body)
    }

    /// Checks that all lists can be answered, and that the file has no unreadable row.
    private static func expectReadable(_ relay: TestRelay) async throws {
        for path in ["/changes?limit=500", "/changes/parked?limit=500"] {
            let answer = try await relay.admin(.get, container + path)
            #expect(answer.status == 200, "\(path): \(answer.text.prefix(300))")
        }
        let records = try await relay.post(
            "records/query", #"{"query":{"recordType":"Artwork"}}"#)
        // No record of the type may have been written yet.
        #expect([200, 404].contains(records.status), "\(records.text.prefix(300))")
        let subscriptions = try await relay.post("subscriptions/list", "{}")
        #expect(subscriptions.status == 200, "\(subscriptions.text.prefix(300))")
        let head = try await relay.store.head()
        _ = try await relay.store.subscriptions(activeAt: head, after: 0, limit: 1000)
        #expect(relay.store.unreadable.takeNews() == [])
        let entries = try await relay.store.storedEntries(after: .start, limit: 1000)
        #expect(entries.last?.position ?? .start == head)
    }

    @Test func `a body that is too deep to be stored is parked with the field's name`()
        async throws
    {
        try await TestRelay.with { relay in
            try await Self.makeSource(relay)
            // A dictionary with a member that begins with `$` is stored as `{"$map": {…}}`, which
            // is two levels instead of one.
            let deep =
                String(repeating: #"{"a":1,"$x":"#, count: 70) + "0"
                + String(repeating: "}", count: 70)
            let body =
                #"{"operation":"create","recordType":"Artwork","recordName":"a","after":{"f":"#
                + deep + "}}"
            let answer = try await Self.post(relay, body)
            #expect(answer.status == 200)
            let entry = answer.json.value(at: ["results", "0"])
            #expect(entry?.value(at: ["status"]) == "parked", "\(answer.text.prefix(300))")
            #expect(entry?.value(at: ["path"]) == "after.f")
            #expect(
                entry?.value(at: ["reason"])
                    == "nested 140 levels deep in its stored form; 128 are allowed")
            try await Self.expectReadable(relay)
        }
    }

    @Test(arguments: Seeds.all)
    func `whatever comes in, stored data can be listed`(seed: UInt64) async throws {
        try await TestRelay.with { relay in
            try await Self.makeSource(relay)
            var odd = OddValues(seed: seed)
            for number in 0..<60 {
                let name = JSONValue.string(odd.name()).text
                let posted = try await Self.post(
                    relay,
                    #"{"operation":"create","recordType":"Posted","recordName":"p\#(number)","#
                        + #""after":{\#(name):\#(odd.json()),"g":\#(odd.json())}}"#)
                #expect(posted.status < 500, "\(posted.text.prefix(300))")
                let written = try await relay.post(
                    "records/modify",
                    #"{"operations":[{"operationType":"create","record":{"recordName":"r\#(number)","#
                        + #""recordType":"Artwork","fields":{"f\#(number)":{"value":\#(odd.json())},"#
                        + #""g\#(number)":\#(odd.json())}}}]}"#)
                #expect(written.status < 500, "\(written.text.prefix(300))")
                let saved = try await relay.post(
                    "subscriptions/modify",
                    #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"#
                        + #""s\#(number)","subscriptionType":"query","firesOn":["create"],"query":{"#
                        + #""recordType":"Artwork","predicate":"f == %@","predicateArguments":"#
                        + #"[\#(odd.json())]}}}]}"#)
                #expect(saved.status < 500, "\(saved.text.prefix(300))")
            }
            try await Self.expectReadable(relay)
        }
    }
}
