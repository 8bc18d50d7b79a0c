import RelayModel
import Testing

/// Regular expressions in requests of strangers and users.
@Suite struct PatternScenarioTests {
    /// Saves three conditions with unique patterns of 27,000 compiled instructions each.
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

    @Test func `a user who compiles very many patterns is asked to retry later`() async throws {
        try await TestRelay.with { relay in
            #expect(try await Self.save(relay, 0).contains("serverErrorCode") == false)
            // A user may compile 400,000 instructions at once, and 20,000 more each second.
            var answer = ""
            for number in 1...20 where !answer.contains("try again later") {
                answer = try await Self.save(relay, number)
            }
            #expect(answer.contains("try again later"), "\(answer)")
            // Each operation is refused with a code and a retry time, by which programs decide.
            #expect(answer.contains("THROTTLED"), "\(answer)")
            #expect(answer.contains("\"retryAfter\":1"), "\(answer)")
            #expect(!answer.contains("BAD_REQUEST"), "\(answer)")
            // Patterns that are compiled already cost nothing.
            #expect(try await Self.save(relay, 0).contains("try again later") == false)
        }
    }
}
