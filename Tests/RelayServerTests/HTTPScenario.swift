import HTTPTypes
import RelayModel
import Testing

/// One request and the answer that the relay must give.
struct HTTPScenario: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var method: HTTPRequest.Method = .post
    var target: String
    var headers: [String: String] = [:]
    var body: String?
    var status: Int
    var code: String?
    /// The complete reason in the answer.
    var reason: String?

    /// Returns a call on subscriptions in the public database with valid credentials.
    static func modify(
        _ description: String, _ body: String?, status: Int, code: String? = nil,
        reason: String? = nil, database: String = "public", action: String = "modify"
    ) -> HTTPScenario {
        HTTPScenario(
            testDescription: description,
            target: "\(TestRelay.path)/\(database)/subscriptions/\(action)\(TestRelay.query())",
            body: body, status: status, code: code, reason: reason)
    }

    /// Sends the request and checks the answer.
    func check(on relay: TestRelay, sourceLocation: SourceLocation = #_sourceLocation) async throws
    {
        let answer = try await relay.call(method, target, headers: headers, body: body)
        #expect(answer.status == status, "\(answer.text)", sourceLocation: sourceLocation)
        if let code {
            #expect(
                answer["serverErrorCode"] == .string(code), "\(answer.text)",
                sourceLocation: sourceLocation)
            #expect(answer["uuid"] != nil, sourceLocation: sourceLocation)
        }
        if let reason {
            #expect(
                answer["reason"] == .string(reason), "\(answer.text)",
                sourceLocation: sourceLocation)
        }
        #expect(
            answer.headers[HTTPField.Name.named("X-Apple-Request-UUID")] != nil,
            sourceLocation: sourceLocation)
        let isForPages = !target.hasPrefix("/admin") && !target.hasPrefix("/metrics")
        #expect(
            answer.headers[.accessControlAllowOrigin] == (isForPages ? "*" : nil),
            sourceLocation: sourceLocation)
    }
}
