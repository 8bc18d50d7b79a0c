import Foundation
import RelayModel
import Testing

@testable import Gateway

@Suite struct ReasonTableTests {
    /// Every answer that Apple documents, with the expected reaction.
    static let expected: [(Int, String, GatewayReaction, ConnectionVerdict)] = [
        (400, "BadCollapseId", .deadLetter, .keep),
        (400, "BadDeviceToken", .forgetDeviceToken(.unknownToGateway), .keep),
        (400, "BadExpirationDate", .deadLetter, .keep),
        (400, "BadMessageId", .deadLetter, .keep),
        (400, "BadPriority", .deadLetter, .keep),
        (400, "BadTopic", .deadLetter, .keep),
        (400, "DeviceTokenNotForTopic", .forgetDeviceToken(.unknownToGateway), .keep),
        (400, "DuplicateHeaders", .deadLetter, .keep),
        (400, "IdleTimeout", .retryOnFreshConnection, .retire),
        (400, "InvalidPushType", .deadLetter, .keep),
        (400, "MissingDeviceToken", .deadLetter, .keep),
        (400, "MissingTopic", .deadLetter, .keep),
        (400, "PayloadEmpty", .deadLetter, .keep),
        (400, "TopicDisallowed", .pauseTopic, .keep),
        (403, "BadCertificate", .pauseContainer, .retire),
        (403, "BadCertificateEnvironment", .pauseContainer, .retire),
        (403, "BadEnvironmentKeyIdInToken", .pauseContainer, .retire),
        (403, "BadEnvironmentKeyInToken", .pauseContainer, .retire),
        (403, "ExpiredProviderToken", .renewProviderToken, .retire),
        (403, "Forbidden", .deadLetter, .keep),
        (403, "InvalidProviderToken", .retryOnFreshConnection, .retire),
        (403, "MissingProviderToken", .deadLetter, .keep),
        (403, "UnrelatedKeyIdInToken", .pauseContainer, .retire),
        (404, "BadPath", .deadLetter, .keep),
        (405, "MethodNotAllowed", .deadLetter, .keep),
        (410, "ExpiredToken", .forgetDeviceToken(.dead(since: nil)), .keep),
        (410, "Unregistered", .forgetDeviceToken(.dead(since: nil)), .keep),
        (413, "PayloadTooLarge", .deadLetter, .keep),
        (429, "TooManyProviderTokenUpdates", .retry(after: nil, scope: .gateway), .retire),
        (429, "TooManyRequests", .retry(after: nil, scope: .device), .keep),
        (500, "InternalServerError", .retry(after: nil, scope: .delivery), .keep),
        (503, "ServiceUnavailable", .retry(after: nil, scope: .gateway), .keep),
        (503, "Shutdown", .retryOnFreshConnection, .retire),
    ]

    @Test(arguments: expected)
    func `every documented answer has its reaction`(
        status: Int, reason: String, reaction: GatewayReaction, connection: ConnectionVerdict
    ) {
        let row = ReasonTable.apns.row(status: status, reason: reason)
        #expect(row.reason == reason)
        #expect(row.reaction == reaction)
        #expect(row.connection == connection)
    }

    @Test func `the table has no other rows`() {
        let rows = Set(ReasonTable.apns.rows.map { "\($0.status) \($0.reason)" })
        #expect(rows == Set(Self.expected.map { "\($0.0) \($0.1)" }))
    }

    @Test func `a reason that needs a person is an alarm`() {
        for row in ReasonTable.apns.rows {
            switch row.reaction {
            case .deadLetter, .pauseTopic, .pauseContainer:
                #expect(row.urgency == .alarm, "\(row.reason)")
            case .forgetDeviceToken, .renewProviderToken:
                #expect(row.urgency == .routine, "\(row.reason)")
            case .deliver, .retry, .retryOnFreshConnection:
                break
            }
        }
    }

    @Test(arguments: [
        (401, GatewayReaction.deadLetter), (404, .deadLetter), (302, .deadLetter),
        (204, .deadLetter), (408, .retry(after: nil, scope: .gateway)),
        (429, .retry(after: nil, scope: .gateway)), (502, .retry(after: nil, scope: .gateway)),
        (599, .retry(after: nil, scope: .gateway)), (421, .retryOnFreshConnection),
        (425, .retryOnFreshConnection), (600, .retry(after: nil, scope: .gateway)),
        (0, .retry(after: nil, scope: .gateway)),
    ])
    func `an answer that is not in the table is judged by its class`(
        status: Int, reaction: GatewayReaction
    ) {
        let row = ReasonTable.apns.row(status: status, reason: "<html>")
        #expect(row.reaction == reaction)
        #expect(row.urgency == .alarm)
    }

    @Test func `the documentation prints the table`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appending(path: "docs/operations.md"), encoding: .utf8)
        #expect(page.contains(ReasonTable.apns.markdown))
    }

    @Test func `a reaction has the times of the answer`() {
        let moment = Timestamp(seconds: 1_700_000_000)
        let patience = GatewayReaction.retry(after: nil, scope: .device)
        #expect(
            patience.informed(timestamp: nil, retryAfter: .seconds(30))
                == .retry(after: .seconds(30), scope: .device))
        #expect(
            GatewayReaction.forgetDeviceToken(.dead(since: nil))
                .informed(timestamp: moment, retryAfter: nil)
                == .forgetDeviceToken(.dead(since: moment)))
        #expect(
            GatewayReaction.forgetDeviceToken(.unknownToGateway)
                .informed(timestamp: moment, retryAfter: nil)
                == .forgetDeviceToken(.unknownToGateway))
    }
}

@Suite struct AnswerBodyTests {
    private func check(_ text: String, reason: String, timestamp: Timestamp? = nil) {
        let body = AnswerBody(reading: Array(text.utf8))
        #expect(body.reason == reason)
        #expect(body.timestamp == timestamp)
    }

    @Test func `the gateway's body is parsed`() {
        check(#"{"reason":"BadTopic"}"#, reason: "BadTopic")
        check(
            #"{"reason":"Unregistered","timestamp":1700000000123}"#, reason: "Unregistered",
            timestamp: Timestamp(milliseconds: 1_700_000_000_123))
    }

    @Test func `a foreign or truncated body is kept in part for people`() {
        check("", reason: "")
        check(#"{"reason":"Unreg"#, reason: #"{"reason":"Unreg"#)
        check("<html>\r\nbad\u{1B}[31m", reason: "<html>..bad.[31m")
        check(#"{"reason":17}"#, reason: #"{"reason":17}"#)
        check(String(repeating: "x", count: 900), reason: String(repeating: "x", count: 200))
    }

    @Test func `tokens that a foreign body repeats are not kept`() {
        let token = String(repeating: "70686f6e65", count: 7)
        check("<p>no /3/device/\(token)?a=1", reason: "<p>no /3/device/***?a=1")
        check(#"{"reason":"Bad \#(token)"}"#, reason: "Bad ***")
        // The token reaches beyond what is shown.
        let padding = String(repeating: "x", count: 190)
        check("\(padding) \(token)", reason: "\(padding) ***")
        let part = "eyJhbGciOiJFUzI1NiIsImtpZCI6IktFWTEyMzQ1NjcifQ"
        check("bearer \(part).\(part).\(part)", reason: "bearer ***.***.***")
        check(#"{"reason":"BadEnvironmentKeyIdInToken"}"#, reason: "BadEnvironmentKeyIdInToken")
    }

    @Test func `a malformed timestamp does not spoil the reason`() {
        check(#"{"reason":"Unregistered","timestamp":"now"}"#, reason: "Unregistered")
    }
}

@Suite struct RequestCheckTests {
    private func check(_ reason: String?, _ change: (inout PushNotification) -> Void) {
        var notification = PushNotification(
            pushType: .alert, priority: 10, topic: "com.example.Art", payload: Array("{}".utf8))
        change(&notification)
        #expect(notification.faultForAPNs()?.reason == reason)
    }

    @Test func `a push that APNs would refuse is found before it is sent`() {
        check(nil) { _ in }
        check("PayloadEmpty") { $0.payload = [] }
        check(nil) { $0.payload = [UInt8](repeating: 32, count: 4096) }
        check("PayloadTooLarge") { $0.payload = [UInt8](repeating: 32, count: 4097) }
        check("MissingTopic") { $0.topic = "" }
        check("BadTopic") { $0.topic = "com.example\r\nauthorization: bearer x" }
        check("BadTopic") { $0.topic = " com.example" }
        check(nil) { $0.collapseID = String(repeating: "x", count: 64) }
        check("BadCollapseId") { $0.collapseID = String(repeating: "x", count: 65) }
        check("BadCollapseId") { $0.collapseID = "" }
        check("BadCollapseId") { $0.collapseID = "a\nb" }
        check("BadPriority") { $0.priority = 7 }
        check("BadPriority") { $0.pushType = .background }
    }

    @Test func `background pushes are sent with priority 5 only`() {
        let cases: [(Int, String?)] = [(5, nil), (1, "BadPriority"), (10, "BadPriority")]
        for (priority, reason) in cases {
            check(reason) {
                $0.pushType = .background
                $0.priority = priority
            }
        }
    }
}
