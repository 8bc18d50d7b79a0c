import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Storage
import Testing

/// What CloudKit's own and third-party clients send, and what they must get.
///
/// Sources are the CloudKit Web Services Reference, CloudKit JS, requests-cloudkit, OpenCloudKit
/// and MistKit.
@Suite struct CloudKitContractTests {
    private static let path = TestRelay.path
    private static let token = "ckAPIToken=\(TestRelay.apiToken)"

    // MARK: Forms of requests

    static let forms: [HTTPScenario] = [
        HTTPScenario(
            testDescription: "CloudKit JS, with all its parameters", method: .get,
            target:
                "\(path)/public/users/caller?ckjsBuildVersion=2310ProjectDev27&ckjsVersion=2.6.4"
                + "&clientId=bf282b1b-c608-493a-b7db-d14e21afab68&"
                + TestRelay.query().dropFirst(), status: 200),
        HTTPScenario(
            testDescription: "the call that CloudKit JS 1.2 makes at its setup", method: .get,
            target: "\(path)/public/users/current\(TestRelay.query())", status: 200),
        HTTPScenario(
            testDescription: "CloudKit JS, signed out", method: .get,
            target: "\(path)/public/users/caller?\(token)&ckWebAuthToken=null", status: 421,
            code: "AUTHENTICATION_REQUIRED"),
        HTTPScenario(
            testDescription: "somebody's database, signed out", method: .get,
            target: "\(path)/private/zones/list?\(token)", status: 421,
            code: "AUTHENTICATION_REQUIRED"),
        HTTPScenario(
            testDescription: "a token that is not one", method: .get,
            target: "\(path)/public/users/caller?ckAPIToken=x", status: 401,
            code: "AUTHENTICATION_FAILED"),
        HTTPScenario(
            testDescription: "a container that is not there", method: .get,
            target: "/database/1/iCloud.none/development/public/users/caller?\(token)",
            status: 404, code: "NOT_FOUND"),
        HTTPScenario(
            testDescription: "a text/plain body with a member that nobody knows",
            target: "\(path)/public/records/query\(TestRelay.query())",
            headers: ["Content-Type": "text/plain"],
            body: #"{"query":{"recordType":"None"},"clientId":"x"}"#, status: 404,
            code: "NOT_FOUND"),
        HTTPScenario(
            testDescription: "a subscription request with a member that nobody knows",
            target: "\(path)/public/subscriptions/lookup\(TestRelay.query())",
            body: #"{"subscriptions":[],"numbersAsStrings":true}"#, status: 200),
        HTTPScenario(
            testDescription: "zones/list as GET", method: .get,
            target: "\(path)/private/zones/list\(TestRelay.query())", status: 200),
        HTTPScenario(
            testDescription: "zones/list as POST",
            target: "\(path)/private/zones/list\(TestRelay.query())", body: "{}", status: 200),
        HTTPScenario(
            testDescription: "subscriptions/list as POST",
            target: "\(path)/private/subscriptions/list\(TestRelay.query())", status: 200),
        HTTPScenario(
            testDescription: "tokens under /device",
            target:
                "/device/1/iCloud.com.example.Art/development/tokens/create\(TestRelay.query())",
            body: #"{"apnsEnvironment":"development","clientId":"c"}"#, status: 200),
        HTTPScenario(
            testDescription: "tokens under /database",
            target: "\(path)/tokens/create\(TestRelay.query())",
            body: #"{"apnsEnvironment":"development"}"#, status: 200),
        HTTPScenario(
            testDescription: "a call that Apple's text has and the relay has not",
            target: "\(path)/public/assets/upload\(TestRelay.query())", body: "{}", status: 404,
            code: "NOT_FOUND"),
        HTTPScenario(
            testDescription: "201 operations",
            target: "\(path)/public/records/modify\(TestRelay.query())",
            body: #"{"operations":["#
                + Array(repeating: "{}", count: 201).joined(separator: ",") + "]}",
            status: 400, code: "BAD_REQUEST",
            reason: "operations: 201 in one request; allowed are 200"),
    ]

    @Test(arguments: forms) func `requests:`(_ scenario: HTTPScenario) async throws {
        try await TestRelay.with { try await scenario.check(on: $0) }
    }

    @Test func `signing in is offered with its URL`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .get, "\(Self.path)/public/users/caller?\(Self.token)&ckWebAuthToken=null")
            #expect(
                answer["redirectURL"]
                    == "https://relay.example/sign-in/1/iCloud.com.example.Art/development")
            #expect(answer["uuid"] != nil)
        }
    }

    @Test func `a page of another origin may read what it needs`() async throws {
        try await TestRelay.with { relay in
            let target = "\(Self.path)/private/records/modify\(TestRelay.query())"
            let preflight = try await relay.call(
                .options, target,
                headers: [
                    "Origin": "https://app.example", "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "content-type",
                ])
            #expect(preflight.status == 204)
            #expect(preflight.headers[.accessControlAllowOrigin] == "https://app.example")
            #expect(preflight.headers[.accessControlAllowMethods]?.contains("POST") == true)
            #expect(preflight.headers[.accessControlAllowHeaders] == "content-type")
            let answer = try await relay.call(
                .get, "\(Self.path)/public/users/caller\(TestRelay.query())")
            let exposed = answer.headers[.accessControlExposeHeaders] ?? ""
            #expect(exposed.contains("X-Apple-CloudKit-Web-Auth-Token"))
            #expect(
                answer.headers[HTTPField.Name.named("X-Apple-CloudKit-Web-Auth-Token")] != nil)
        }
    }

    // MARK: Users

    @Test func `the caller is returned in the flat form and in the form of Apple's text`()
        async throws
    {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .get, "\(Self.path)/public/users/caller\(TestRelay.query())")
            #expect(answer["userRecordName"] == "_alice")
            #expect(answer.json.value(at: ["users", "0", "userRecordName"]) == "_alice")
        }
    }

    @Test(
        arguments: [
            ("lookup/id", #"{"users":[{"userRecordName":"_bob"}]}"#, "_bob"),
            ("lookup/id", #"{"users":["_bob"]}"#, "_bob"),
            ("lookup/email", #"{"users":[{"emailAddress":"b@example.com"}]}"#, nil),
            ("discover", #"{"lookupInfos":[{"userRecordName":"_bob"}]}"#, "_bob"),
            ("discover", #"{"lookupInfos":[{"phoneNumber":"1"}]}"#, nil),
        ])
    func `users are looked up by their record names:`(
        call: String, body: String, name: String?
    )
        async throws
    {
        try await TestRelay.with { relay in
            let answer = try await relay.post("users/\(call)", body)
            #expect(answer.status == 200, "\(answer.text)")
            let entry = answer.json.value(at: ["users", "0"])
            #expect(entry?.value(at: ["userRecordName"]) == name.map { .string($0) })
            let code = entry?.value(at: ["serverErrorCode"])
            #expect(code == (name == nil ? "NOT_FOUND" : nil))
            #expect(entry?.value(at: ["lookupInfo"]) != nil)
        }
    }

    // MARK: Errors

    @Test(
        arguments: [
            ("ACCESS_DENIED", 403), ("ATOMIC_ERROR", 400), ("AUTHENTICATION_FAILED", 401),
            ("AUTHENTICATION_REQUIRED", 421), ("BAD_REQUEST", 400), ("CONFLICT", 409),
            ("EXISTS", 409), ("INTERNAL_ERROR", 500), ("NOT_FOUND", 404),
            ("QUOTA_EXCEEDED", 413), ("THROTTLED", 429), ("TRY_AGAIN_LATER", 503),
            ("VALIDATING_REFERENCE_ERROR", 412), ("ZONE_NOT_FOUND", 404),
        ])
    func `every documented code has its status:`(code: String, status: Int) {
        #expect(ServerErrorCode(rawValue: code)?.httpStatus == status)
        #expect(ServerErrorCode.allCases.count == 14)
    }

    private static func reference(_ name: String) -> String {
        RecordScenarioTests.body(
            RecordScenarioTests.operation(
                "create",
                #"{"recordName":"c","recordType":"Child","fields":{"parent":{"value":"#
                    + #"{"recordName":"\#(name)","action":"VALIDATE"},"type":"REFERENCE"}}}"#))
    }

    @Test func `a validated reference must have a target`() async throws {
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            let lost = try await relay.post("records/modify", Self.reference("nobody"))
            #expect(
                lost.json.value(at: ["records", "0", "serverErrorCode"])
                    == "VALIDATING_REFERENCE_ERROR", "\(lost.text)")
            let held = try await relay.post("records/modify", Self.reference("a1"))
            #expect(held.json.value(at: ["records", "0", "recordName"]) == "c", "\(held.text)")
        }
    }

    /// The relay reads them a few at a time.
    @Test func `a deletion cascades through DELETE_SELF references of any depth`() async throws {
        @Sendable func child(_ name: String, of parent: String) -> String {
            RecordScenarioTests.operation(
                "create",
                #"{"recordName":"\#(name)","recordType":"Child","fields":{"parent":{"value":"#
                    + #"{"recordName":"\#(parent)","action":"DELETE_SELF"},"#
                    + #""type":"REFERENCE"}}}"#)
        }
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            for number in 0..<20 {
                _ = try await relay.post(
                    "records/modify",
                    RecordScenarioTests.body(
                        child("c\(number)", of: "a1"), child("g\(number)", of: "c\(number)")))
            }
            let before = try await relay.post(
                "records/query", #"{"query":{"recordType":"Child"}}"#)
            #expect(RecordScenarioTests.names(before).count == 40)
            _ = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    RecordScenarioTests.operation("forceDelete", #"{"recordName":"a1"}"#)))
            let rest = try await relay.post(
                "records/query", #"{"query":{"recordType":"Child"}}"#)
            #expect(RecordScenarioTests.names(rest) == [], "\(rest.text)")
        }
    }

    @Test func `a record with very many validated references is refused`() async throws {
        @Sendable func links(_ names: [String]) -> String {
            let references = names.map { #"{"recordName":"\#($0)","action":"VALIDATE"}"# }
            return RecordScenarioTests.body(
                RecordScenarioTests.operation(
                    "create",
                    #"{"recordName":"l","recordType":"Links","fields":{"links":{"value":["#
                        + references.joined(separator: ",")
                        + #"],"type":"REFERENCE_LIST"}}}"#))
        }
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            let many = try await relay.post("records/modify", links((0...1000).map { "n\($0)" }))
            #expect(many.text.contains("at most 1000 references"), "\(many.text)")
            // Each target is looked up once.
            let same = Array(repeating: "a1", count: 5000)
            let held = try await relay.post("records/modify", links(same))
            #expect(held.json.value(at: ["records", "0", "recordName"]) == "l", "\(held.text)")
        }
    }

    @Test func `a request with very many validated references is refused in part`()
        async throws
    {
        let references = (0..<900).map { #"{"recordName":"n\#($0)","action":"VALIDATE"}"# }
        let operations = [900, 900, 900, 1].enumerated().map { number, count -> String in
            let links = references.prefix(count).joined(separator: ",")
            return RecordScenarioTests.operation(
                "create",
                #"{"recordName":"l\#(number)","recordType":"Links","fields":{"links":{"value":["#
                    + links + #"],"type":"REFERENCE_LIST"}}}"#)
        }
        try await TestRelay.with { relay in
            let answer = try await relay.post(
                "records/modify", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
            let codes = (0..<4).map { index -> JSONValue? in
                answer.json.value(at: ["records", "\(index)", "serverErrorCode"])
            }
            let missing = JSONValue.string("VALIDATING_REFERENCE_ERROR")
            let expected: [JSONValue?] = [missing, missing, .string("QUOTA_EXCEEDED"), missing]
            #expect(codes == expected, "\(answer.text)")
        }
    }

    @Test func `a record that refers by DELETE_SELF is deleted with its target`() async throws {
        @Sendable func child(_ name: String, of parent: String, _ action: String) -> String {
            RecordScenarioTests.operation(
                "create",
                #"{"recordName":"\#(name)","recordType":"Child","fields":{"parent":{"value":"#
                    + #"{"recordName":"\#(parent)","action":"\#(action)"},"type":"REFERENCE"}}}"#)
        }
        try await TestRelay.with { relay in
            try await RecordScenarioTests.fill(relay, [1])
            _ = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    child("c1", of: "a1", "DELETE_SELF"), child("c2", of: "c1", "DELETE_SELF"),
                    child("c3", of: "a1", "NONE")))
            _ = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    RecordScenarioTests.operation("forceDelete", #"{"recordName":"a1"}"#)))
            let rest = try await relay.post(
                "records/query", #"{"query":{"recordType":"Child"}}"#)
            #expect(RecordScenarioTests.names(rest) == ["c3"], "\(rest.text)")
            let changes = try await relay.post("records/changes", "{}")
            #expect(
                Set(RecordScenarioTests.names(changes)) == ["a1", "c1", "c2", "c3"],
                "\(changes.text)")
        }
    }

    @Test func `a second operation on one record in a request is refused`()
        async throws
    {
        try await TestRelay.with { relay in
            let create = RecordScenarioTests.operation(
                "create", RecordScenarioTests.artwork("a", "{}"))
            let answer = try await relay.post(
                "records/modify", RecordScenarioTests.body(create, create))
            #expect(answer.json.value(at: ["records", "0", "recordChangeTag"]) != nil)
            #expect(answer.json.value(at: ["records", "1", "serverErrorCode"]) == "BAD_REQUEST")
        }
    }

    @Test func `omitted record names are generated`() async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.post(
                "records/modify",
                RecordScenarioTests.body(
                    RecordScenarioTests.operation("create", #"{"recordType":"Artwork"}"#),
                    RecordScenarioTests.operation("create", #"{"recordType":"Artwork"}"#)))
            let names = RecordScenarioTests.names(answer)
            #expect(names.count == 2 && Set(names).count == 2)
            #expect(names.allSatisfy { UUIDBytes($0) != nil })
        }
    }
}
