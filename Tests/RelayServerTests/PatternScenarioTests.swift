import RelayModel
import Testing

/// Regular expressions as strangers and users send them.
@Suite struct PatternScenarioTests {
    /// Saves three conditions with patterns that nobody else has, of 27,000 instructions each.
    private static func save(_ relay: TestRelay, _ number: Int) async throws -> String {
        let operations = (0..<3).map { part in
            let name = "\(number)-\(part)"
            let predicate = "k = 'v\(name)' AND t MATCHES '\\\\\\\\w{1,20}sent\(name)'"
            return #"{"operationType":"create","subscription":{"subscriptionID":"s\#(name)","#
                + #""subscriptionType":"query","firesOn":["create"],"query":{"recordType":"Art","#
                + #""predicate":"\#(predicate)"}}}"#
        }
        return try await relay.post(
            "subscriptions/modify", #"{"operations":[\#(operations.joined(separator: ","))]}"#
        ).text
    }

    @Test func `who has very many compiled is told to come again later`() async throws {
        try await TestRelay.with { relay in
            #expect(try await Self.save(relay, 0).contains("serverErrorCode") == false)
            // 400,000 instructions are there at once, and 20,000 come in a second.
            var answer = ""
            for number in 1...20 where !answer.contains("try again later") {
                answer = try await Self.save(relay, number)
            }
            #expect(answer.contains("try again later"), "\(answer)")
            // In the place of each operation, by the code and the time that programs go by.
            #expect(answer.contains("THROTTLED"), "\(answer)")
            #expect(answer.contains("\"retryAfter\":1"), "\(answer)")
            #expect(!answer.contains("BAD_REQUEST"), "\(answer)")
            // What was compiled already is nothing new.
            #expect(try await Self.save(relay, 0).contains("try again later") == false)
        }
    }
}
