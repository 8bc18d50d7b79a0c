import Foundation
import HTTPTypes
import RelayModel
import RelayServer
import RelayTestKit
import Testing

/// The OpenAPI document describes the relay, and the relay behaves as described.
@Suite(.serialized, .timeLimit(.minutes(30))) struct OpenAPITests {
    @Test func `the document has exactly the relay's routes`()
        async throws
    {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        try await TestRelay.with { relay in
            let routes = RelayRouter.routes(relay.dependencies).map { "\($0.method) \($0.path)" }
            let calls = document.calls.map(\.name)
            #expect(Set(routes).subtracting(calls).sorted() == [], "not in the document")
            #expect(Set(calls).subtracting(routes).sorted() == [], "no routes")
            #expect(calls.count == Set(calls).count)
            let names = document.calls.compactMap { $0.description["operationId"] }
            #expect(Set(names).count == calls.count)
            let answer = try await relay.call(.get, "/openapi.json")
            #expect(answer["openapi"] == "3.1.0")
            #expect(answer.json.value(at: ["servers", "0", "url"]) == "https://relay.example")
        }
    }

    @Test func `the administrative routes are exactly the described calls`() async throws {
        let described = AdministrationCall.all.map { "\($0.method) \($0.path)" }
        #expect(described.count == Set(described).count)
        try await TestRelay.with { relay in
            let answered = RelayRouter.routes(relay.dependencies)
                .filter { $0.surface == .administration }.map { "\($0.method) \($0.path)" }
            #expect(Set(answered) == Set(described))
            #expect(answered.count == described.count)
        }
    }

    /// The verbs with which a summary may begin.
    private static let verbs: Set<Substring> = [
        "Answer", "Begin", "Change", "Check", "Create", "Delete", "Drop", "End", "Explain", "Fetch",
        "Follow",
        "Forget", "Get", "Give", "List", "Look", "Make", "Mark", "Open", "Poll", "Post", "Query",
        "Read", "Register", "Rehearse", "Replace", "Report", "Revoke", "Send", "Set", "Show",
        "Take", "Turn", "Unregister", "Wait",
    ]

    /// Lists of calls show the summaries one under the other.
    @Test func `every summary is a sentence that begins with a verb`() throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        for call in document.calls {
            guard case .string(let summary)? = call.description["summary"] else {
                Issue.record("\(call.name) has no summary")
                continue
            }
            let verb = summary.prefix { $0.isLetter }
            #expect(Self.verbs.contains(verb), "\(call.name): \(summary)")
            #expect(summary.hasSuffix("."), "\(call.name): \(summary)")
            #expect(summary.utf8.count <= 250, "\(call.name): \(summary)")
        }
    }

    /// Wherever a call documents its rows, each column of its command must be a member of them.
    @Test func `every column of a command is a member of the answer`() throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        var checked = 0
        for call in AdministrationCall.all {
            guard let list = call.list,
                let described = document.calls.first(where: {
                    $0.method == call.method && $0.path == call.path
                }),
                let answer = document.answer(of: described, status: 200),
                case .object(let members)? = answer.value(at: [
                    "content", "application/json", "schema", "properties", list.member, "items",
                    "properties",
                ])
            else { continue }
            for column in list.columns {
                checked += 1
                #expect(members[column.path[0]] != nil, "\(call.path): \(column.path)")
            }
        }
        #expect(checked > 60)
    }

    @Test func `every member of a saved subscription is in the document`() async throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        let place = ["components", "schemas", "SavedSubscription", "properties"]
        guard case .object(let known)? = document.json.value(at: place) else {
            Issue.record("the document has no saved subscription")
            return
        }
        try await TestRelay.with { relay in
            for subscription in [
                #"{"subscriptionID":"q","subscriptionType":"query","firesOn":["update"],"#
                    + #""query":{"recordType":"Artwork"},"firesWhen":"left","#
                    + #""changedKeys":["price"],"suppress":"none","urgent":true,"#
                    + #""notificationInfo":{"alertBody":"A"}}"#,
                #"{"subscriptionID":"z","subscriptionType":"zone","zoneWide":true,"#
                    + #""recordType":"Artwork"}"#,
            ] {
                let saved = try await relay.post(
                    "subscriptions/modify", SubscriptionScenarioTests.create(subscription))
                guard case .object(let answer)? = saved.json.value(at: ["subscriptions", "0"])
                else {
                    Issue.record("\(saved.text)")
                    return
                }
                #expect(answer["activationPosition"] != nil, "\(saved.text)")
                let unknown = answer.members.map { $0.name }.filter { known[$0] == nil }
                #expect(unknown.isEmpty, "\(unknown)")
            }
        }
    }

    /// Returns the members of an object that a component of the document lacks.
    private static func unknown(
        _ value: JSONValue?, in name: String, of document: APIDocument
    ) -> [String] {
        guard case .object(let object)? = value,
            case .object(let known)? = document.json.value(
                at: ["components", "schemas", name, "properties"])
        else { return ["no object"] }
        return object.members.map { $0.name }.filter { known[$0] == nil }
    }

    private static func query(_ id: String, _ predicate: String) -> String {
        #"{"subscriptionID":"\#(id)","subscriptionType":"query","firesOn":["create"],"#
            + #""query":{"recordType":"Artwork","predicate":"\#(predicate)"},"#
            + #""notificationInfo":{"alertBody":"A"}}"#
    }

    /// Programs decide by these members, and clients that are generated from the document know no
    /// others.
    @Test func `every member of a refusal is in the document`() async throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        try await TestRelay.with { relay in
            let saved = try await relay.post(
                "subscriptions/modify",
                SubscriptionScenarioTests.create(Self.query("a", "price < 3")))
            #expect(saved.status == 200, "\(saved.text)")
            for (text, member) in [
                (Self.query("b", "price < 3"), "duplicateOf"),
                (Self.query("c", "price <"), "predicateError"),
            ] {
                let answer = try await relay.post(
                    "subscriptions/modify", SubscriptionScenarioTests.create(text))
                let refused = answer.json.value(at: ["subscriptions", "0"])
                #expect(refused?.value(at: [member]) != nil, "\(answer.text)")
                #expect(Self.unknown(refused, in: "SubscriptionError", of: document) == [])
            }
            let checked = try await relay.admin(
                .post, "containers/iCloud.com.example.Art/development/subscriptions/check",
                #"{"query":{"recordType":"Artwork","predicate":"price <"}}"#)
            #expect(checked["predicateError"] != nil, "\(checked.text)")
            #expect(Self.unknown(checked.json, in: "Error", of: document) == [])
        }
    }

    /// Client generators treat a constant as what distinguishes one kind of response from another.
    ///
    /// For a constant in an optional member, one of them generates code that does not compile.
    @Test func `no optional member is a constant`() throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        func check(_ value: JSONValue) {
            switch value {
            case .array(let elements): elements.forEach(check)
            case .object(let object):
                if case .object(let members)? = object["properties"] {
                    var required: [JSONValue] = []
                    if case .array(let names)? = object["required"] { required = names }
                    for member in members.members where !required.contains(.string(member.name)) {
                        #expect(member.value.value(at: ["const"]) == nil, "\(member.name)")
                    }
                }
                object.members.forEach { check($0.value) }
            default: break
            }
        }
        check(document.json)
    }

    @Test func `the continuation members of answers are parameters`() throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        var checked = 0
        for call in document.calls {
            let members = document.answer(of: call, status: 200)?
                .value(at: ["content", "application/json", "schema", "properties"])
            for name in ["continuationMarker", "syncToken"]
            where members?.value(at: [name]) != nil {
                checked += 1
                let isAsked = document.parameters(of: call, in: "query")
                    .contains { $0.name == name }
                let isSent = call.body?.schema.value(at: ["properties", name]) != nil
                #expect(isAsked || isSent, "\(call.name): \(name)")
            }
        }
        #expect(checked > 10)
    }

    @Test func `every reference of the document resolves`() throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        func check(_ value: JSONValue) {
            switch value {
            case .array(let elements): elements.forEach(check)
            case .object(let object):
                if case .string(let reference)? = object["$ref"] {
                    #expect(document.resolved(value) != .null, "\(reference)")
                }
                object.members.forEach { check($0.value) }
            default: break
            }
        }
        check(document.json)
    }

    @Test(arguments: Seeds.all)
    func `no generated request fails, and every answer fits its schema`(
        seed: UInt64
    ) async throws {
        let document = APIDocument(try #require(OpenAPIRoutes.document))
        try await RunningRelay.with { relay in
            for name in ["Other", "Art"] {
                _ = try await relay.client.administer(
                    "PUT", "containers/iCloud.com.example.\(name)/production",
                    ["topics": ["com.example.Art"]])
            }
            var tester = APITester(document: document, relay: relay, seed: seed)
            let calls = document.calls.filter(\.isAnswered)
            for round in 0..<12 {
                for call in calls { try await tester.check(call, round: round) }
            }
            try await tester.checkHeld()
            #expect(tester.findings == [], "seed \(seed)")
            #expect(tester.successes > calls.count / 2)
        }
    }
}

/// Sends generated requests to a running relay, and compares the responses with the document.
struct APITester {
    let document: APIDocument
    let relay: RunningRelay
    private var generator: APIGenerator
    /// The findings, each with the request and the reason.
    private(set) var findings: [String] = []
    /// The number of responses with a status below 300.
    private(set) var successes = 0
    /// Requests of calls that the relay holds; it delays refusals of these too.
    private var held: [Request] = []

    /// One generated request.
    private struct Request: Sendable {
        let call: APIDocument.Call
        let target: String
        let headers: [String: String]
        let body: String?

        var about: String {
            "\(call.method) \(target.prefix(160)) \((body ?? "").prefix(300))"
        }
    }

    init(document: APIDocument, relay: RunningRelay, seed: UInt64) {
        self.document = document
        self.relay = relay
        generator = APIGenerator(document: document, random: SeededGenerator(seed: seed))
    }

    /// Makes one request of a call.
    ///
    /// In the first round it is the document's example, sent by a signed-in user. After that it is
    /// generated.
    mutating func check(_ call: APIDocument.Call, round: Int) async throws {
        let isExample = round == 0
        let target = target(of: call, isExample: isExample)
        var headers: [String: String] = ["Content-Type": "text/plain"]
        if call.isAdministrative {
            headers["Authorization"] = "Bearer \(RelayClient.adminToken)"
        }
        let body = call.method == "GET" ? nil : self.body(of: call, isExample: isExample)
        let request = Request(call: call, target: target, headers: headers, body: body)
        guard !call.isHeld else { return held.append(request) }
        judge(try await Self.send(request, on: relay), of: request)
    }

    /// Sends the held requests all at once, because each refusal takes two seconds.
    mutating func checkHeld() async throws {
        let requests = held
        let replies = try await withThrowingTaskGroup(
            of: (Int, RelayClient.Reply).self
        ) { [relay] group in
            for (index, request) in requests.enumerated() {
                group.addTask { (index, try await Self.send(request, on: relay)) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for (index, reply) in replies { judge(reply, of: requests[index]) }
        held = []
    }

    private mutating func judge(_ reply: RelayClient.Reply, of request: Request) {
        if reply.status < 300 { successes += 1 }
        if reply.status >= 500, !document.documents(reply.status, of: request.call) {
            findings.append("\(request.about): \(reply.status) \(reply.text.prefix(300))")
        }
        findings += problems(reply, request.call)
            .map { "\(request.about): \(reply.status) \($0)" }
    }

    private static func send(
        _ request: Request, on relay: RunningRelay
    ) async throws -> RelayClient.Reply {
        let client =
            request.call.isAdministrative
            ? RelayClient.administering(relay.client) : relay.client
        return try await client.call(
            request.call.method, request.target, headers: request.headers, body: request.body)
    }

    private func problems(_ reply: RelayClient.Reply, _ call: APIDocument.Call) -> [String] {
        guard let answer = document.answer(of: call, status: reply.status) else {
            return ["the status is not documented"]
        }
        guard let schema = answer.value(at: ["content", "application/json", "schema"]) else {
            return []
        }
        return SchemaCheck(document: document).problems(reply.json, schema)
    }

    // MARK: What is sent

    private mutating func target(of call: APIDocument.Call, isExample: Bool) -> String {
        var path = call.path
        for (name, schema) in document.parameters(of: call, in: "path") {
            let value = pathValue(name, schema, call, isExample: isExample)
            let escaped = value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "x"
            path = path.replacing("{\(name)}", with: escaped.isEmpty ? "x" : escaped)
        }
        var query: [String] = []
        if !call.isAdministrative {
            if isExample || !generator.random.chance(5) {
                query.append("ckAPIToken=\(relay.container.apiToken)")
            }
            let token = SampleContainer.userToken("alice")
            query.append(
                "ckWebAuthToken=\(isExample || !generator.random.chance(10) ? token : "null")")
            query.append("ckjsVersion=2.0.3")
        }
        for (name, schema) in document.parameters(of: call, in: "query")
        where !isExample && generator.random.chance(30) {
            var text = generator.value(schema).text
            if case .string(let plain) = generator.value(schema) { text = plain }
            let escaped = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            query.append("\(name)=\(escaped)")
        }
        return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
    }

    /// Returns a value for a variable part of a path.
    ///
    /// Names exist where that matters. Changes of the operator's go to another container, so that
    /// they do not disturb the other calls.
    private mutating func pathValue(
        _ name: String, _ schema: JSONValue, _ call: APIDocument.Call, isExample: Bool
    ) -> String {
        if !isExample, generator.random.chance(8) { return generator.text() }
        switch name {
        case "container":
            return call.isAdministrative && call.method != "GET"
                ? "iCloud.com.example.Other" : "iCloud.com.example.Art"
        case "environment":
            if call.isAdministrative, call.method != "GET" { return "production" }
            return "development"
        case "database":
            // Users can be discovered in the public database only.
            guard !call.path.hasSuffix("users/discover") else { return "public" }
            return isExample ? "private" : generator.pick(["public", "private"])
        case "source": return "database"
        default:
            if case .string(let text) = generator.value(schema) { return text }
            return "1"
        }
    }

    private mutating func body(of call: APIDocument.Call, isExample: Bool) -> String? {
        guard let (schema, example) = call.body else { return nil }
        if isExample, let example { return example.text }
        if generator.random.chance(8) { return generator.garbage() }
        let value =
            generator.random.chance(30)
            ? example ?? generator.value(schema) : generator.value(schema)
        return (generator.random.chance(40) ? generator.spoiled(value) : value).text
    }
}

extension RelayClient {
    /// Returns a client that makes all calls to the operator's listener.
    static func administering(_ client: RelayClient) -> RelayClient {
        var administering = client
        administering.url = client.adminURL
        return administering
    }
}
