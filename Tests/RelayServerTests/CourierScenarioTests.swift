import HTTPTypes
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Tokens and couriers, call by call.
@Suite struct CourierScenarioTests {
    private static let device = "/device/1/iCloud.com.example.Art/development/tokens"
    private static let plain = TestRelay.query().replacing("ckjsVersion=2.0.3&", with: "")

    private static func create(
        _ relay: TestRelay, query: String = plain,
        body: String = #"{"apnsEnvironment":"production"}"#
    ) async throws -> TestRelay.Answer {
        try await relay.call(
            .post, "\(device)/create\(query)", headers: ["Content-Type": "text/plain"], body: body)
    }

    private static func text(_ value: JSONValue?) -> String {
        if case .string(let text)? = value { text } else { "" }
    }

    @Test func `a created token has CloudKit's three members and is registered`() async throws {
        try await TestRelay.with { relay in
            let answer = try await Self.create(relay, query: Self.plain + "&clientId=tab")
            guard case .object(let object) = answer.json else { return }
            #expect(
                object.members.map(\.name) == ["apnsEnvironment", "apnsToken", "webcourierURL"])
            let secret = try #require(Self.text(answer["webcourierURL"]).split(separator: "/").last)
            #expect(Secrets.verifier(of: Self.text(answer["apnsToken"])) == secret)
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(devices.map(\.device.gateway) == [.courier])
            // A reader of the store can neither fetch notifications nor register the device with
            // what it holds.
            #expect(
                devices.map(\.device.token.rawValue) == [Secrets.verifier(of: String(secret))])
            #expect(devices.map(\.device.id.rawValue) == ["tab"])
            #expect(devices.map(\.device.gatewayEnvironment) == [.production])
            let shown = try await relay.admin(
                .get, "containers/iCloud.com.example.Art/development/couriers")
            #expect(!shown.text.contains(secret))
            #expect(!shown.text.contains(Self.text(answer["apnsToken"])))
        }
    }

    @Test func `a registration answers CloudKit JS 1 with nothing and others with the courier`()
        async throws
    {
        try await TestRelay.with { relay in
            let made = try await Self.create(relay)
            let body =
                #"{"apnsEnvironment":"production","apnsToken":"\#(Self.text(made["apnsToken"]))"}"#
            for query in ["ckjsBuildVersion=16D&ckjsVersion=1.2.0", "ckjsBuildVersion=2015"] {
                let silent = try await relay.call(
                    .post, "\(Self.device)/register\(Self.plain)&\(query)", body: body)
                #expect(silent.status == 200)
                #expect(silent.text.isEmpty)
            }
            for query in [TestRelay.query(), Self.plain, Self.plain + "&ckjsVersion=2.6.4"] {
                let spoken = try await relay.call(
                    .post, "\(Self.device)/register\(query)", body: body)
                for name in ["apnsEnvironment", "apnsToken", "webcourierURL"] {
                    #expect(spoken[name] == made[name], "\(name) in \(spoken.text)")
                }
            }
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(devices.map(\.device.gateway) == [.courier])
        }
    }

    @Test func `a courier from before tickets can still register`() async throws {
        try await TestRelay.with { relay in
            let token = String(repeating: "ab", count: 32)
            let device = Device(
                id: known("old"), container: TestRelay.container, owner: known("_alice"),
                gateway: .courier, gatewayEnvironment: .development,
                token: try #require(DeviceToken(rawValue: token)), topic: "courier")
            _ = try await relay.store.createCourier(for: device, at: TestRelay.now)
            let answer = try await relay.call(
                .post, "\(Self.device)/register\(Self.plain)",
                body: #"{"apnsEnvironment":"development","apnsToken":"\#(token)"}"#)
            #expect(answer["apnsToken"] == .string(token), "\(answer.text)")
            #expect(answer["webcourierURL"] == nil)
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(devices.map(\.device.gateway) == [.courier])
        }
    }

    /// Operators see a courier's device token, and may be users of another container.
    @Test func `a courier's device token is not enough to take it over`() async throws {
        try await TestRelay.with { relay in
            let made = try await Self.create(relay)
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            let seen = try #require(devices.first?.device.token.rawValue)
            let taken = try await relay.call(
                .post, "\(Self.device)/register\(TestRelay.query("_mallory"))",
                body: #"{"apnsEnvironment":"production","apnsToken":"\#(seen)"}"#)
            #expect(taken.status == 400, "\(taken.text)")
            let path = Self.text(made["webcourierURL"])
                .replacing("https://relay.example", with: "")
            #expect(try await relay.call(.get, path).status == 200)
            let after = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(after.map(\.device.owner.rawValue) == ["_alice"])
        }
    }

    @Test func `another token of a page's client leaves the page's courier alone`() async throws {
        try await TestRelay.with { relay in
            let page = Self.plain + "&clientId=page"
            let first = try await Self.create(relay, query: page)
            let second = try await Self.create(relay, query: page)
            let native = String(repeating: "cd", count: 32)
            for _ in 1...2 {
                let answer = try await relay.call(
                    .post, "\(Self.device)/register\(Self.plain)",
                    body: #"{"apnsEnvironment":"production","apnsToken":"\#(native)","#
                        + #""clientId":"page"}"#)
                #expect(answer.status == 200, "\(answer.text)")
            }
            for made in [first, second] {
                let path = Self.text(made["webcourierURL"])
                    .replacing("https://relay.example", with: "")
                #expect(try await relay.call(.get, path).status == 200)
            }
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(devices.map(\.device.gateway) == [.courier, .courier, .apns])
            let ids = devices.map(\.device.id)
            #expect(ids.first?.rawValue == "page")
            #expect(Set(ids).count == 3)
            #expect(ids.allSatisfy { $0.isOfSameClient(as: known("page")) })
            // Unregistering the client removes all its devices.
            let gone = try await relay.call(
                .post, "\(Self.device)/unregister\(Self.plain)", body: #"{"clientId":"page"}"#)
            #expect(gone["deviceID"] == "page", "\(gone.text)")
            let left = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(left.isEmpty)
        }
    }

    @Test func `an application's new token replaces its old one`() async throws {
        try await TestRelay.with { relay in
            for digits in ["ab", "cd"] {
                let answer = try await relay.call(
                    .post, "\(Self.device)/register\(Self.plain)",
                    body: #"{"apnsEnvironment":"production","clientId":"phone","apnsToken":""#
                        + String(repeating: digits, count: 32) + #""}"#)
                #expect(answer["deviceID"] == "phone", "\(answer.text)")
            }
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(devices.map(\.device.token.rawValue) == [String(repeating: "cd", count: 32)])
        }
    }

    @Test(
        arguments: [
            (String(repeating: "q6ur", count: 10) + "q6s=", String(repeating: "ab", count: 32)),
            (String(repeating: "AB", count: 32), String(repeating: "ab", count: 32)),
            (String(repeating: "ab", count: 31) + "ag", nil),
            ("q6ur", nil), ("", nil),
        ] as [(String, String?)])
    func `an APNs token is accepted in hexadecimal and base64 but not mistyped`(
        text: String, digits: String?
    ) async throws {
        try await TestRelay.with { relay in
            let answer = try await relay.call(
                .post, "\(Self.device)/register\(Self.plain)",
                body: #"{"apnsEnvironment":"development","apnsToken":"\#(text)"}"#)
            #expect(answer.status == (digits == nil ? 400 : 200), "\(answer.text)")
            let devices = try await relay.store.devices(
                of: TestRelay.container, owner: nil, limit: 9)
            #expect(devices.map(\.device.token.rawValue) == [digits].compactMap(\.self))
            #expect(devices.allSatisfy { $0.device.gateway == .apns })
        }
    }

    @Test func `a courier is polled by GET or POST, and an ended one answers forbidden`()
        async throws
    {
        try await TestRelay.with { relay in
            let made = try await Self.create(relay)
            let secret = Self.text(made["webcourierURL"]).split(separator: "/").last ?? ""
            let path = "/courier/1/\(secret)"
            let empty = try await relay.call(.get, path)
            #expect(empty.status == 200)
            #expect(empty.text.isEmpty)
            #expect(try await relay.call(.post, path).status == 200)
            let head = try await relay.call(.head, path)
            #expect(head.status == 405)
            #expect(head.headers[.allow] == "GET, OPTIONS, POST")
            let preflight = try await relay.call(
                .options, path, headers: ["Origin": "https://app.example"])
            #expect(preflight.headers[.accessControlAllowMethods] == "GET, OPTIONS, POST")
            for stranger in [String(repeating: "0", count: 64), "x", "\(secret)0"] {
                let answer = try await relay.call(.get, "/courier/1/\(stranger)")
                #expect(answer.status == 403)
                #expect(answer["serverErrorCode"] == "ACCESS_DENIED")
            }
            let token = Self.text(made["apnsToken"])
            let byToken = try await relay.call(.get, "/courier/1/\(token)")
            #expect(byToken.status == 403, "the token is no key")
        }
    }

    @Test(arguments: [
        (#"{}"#, "apnsEnvironment: is required"),
        (
            #"{"apnsEnvironment":"sandbox"}"#,
            #"apnsEnvironment: "sandbox" is unknown; allowed are "development", "production""#
        ),
        (
            #"{"apnsEnvironment":"production","topic":"x"}"#,
            "topic: unknown field; allowed are apnsEnvironment, clientId, clientID, deviceID"
        ),
    ])
    func `a token that cannot be created is refused with the place`(
        body: String, reason: String
    ) async throws {
        try await TestRelay.with { relay in
            let answer = try await Self.create(relay, body: body)
            #expect(answer.status == 400)
            #expect(answer["reason"] == .string(reason))
        }
    }

    @Test func `a client in the query must be able to name a device, and an empty one is none`()
        async throws
    {
        try await TestRelay.with { relay in
            let answer = try await Self.create(relay, query: Self.plain + "&clientId=%07")
            #expect(answer.status == 400)
            #expect(answer.text.contains("clientId: "), "\(answer.text)")
            let nameless = try await Self.create(relay, query: Self.plain + "&clientId=")
            #expect(nameless.status == 200, "\(nameless.text)")
        }
    }

    @Test func `a user can only end their own devices`() async throws {
        try await TestRelay.with { relay in
            let made = try await Self.create(relay, query: Self.plain + "&clientId=tab")
            let bob = TestRelay.query("_bob")
            for body in [
                #"{"deviceID":"tab"}"#, #"{"apnsToken":"\#(Self.text(made["apnsToken"]))"}"#,
            ] {
                let answer = try await relay.call(
                    .post, "\(Self.device)/unregister\(bob)", body: body)
                #expect(answer.status == 404)
            }
            let nothing = try await relay.call(
                .post, "\(Self.device)/unregister\(Self.plain)", body: "{}")
            #expect(nothing.status == 400)
            let answer = try await relay.call(
                .post, "\(Self.device)/unregister\(Self.plain)",
                body: #"{"apnsToken":"\#(Self.text(made["apnsToken"]))"}"#)
            #expect(answer.json == ["deviceID": "tab", "deleted": true])
            let url = Self.text(made["webcourierURL"])
            let path = url.replacing("https://relay.example", with: "")
            let poll = try await relay.call(.get, path)
            #expect(poll.status == 403)
            // A courier's token is not accepted as a token of APNs.
            let again = try await relay.call(
                .post, "\(Self.device)/register\(Self.plain)",
                body: #"{"apnsEnvironment":"production","apnsToken":""#
                    + Self.text(made["apnsToken"]) + #"","webcourierURL":"\#(url)"}"#)
            #expect(again.status == 400, "\(again.text)")
        }
    }

    @Test func `a page of any origin may call with credentials and its own headers`()
        async throws
    {
        try await TestRelay.with { relay in
            let preflight = try await relay.call(
                .options, "\(Self.device)/create",
                headers: [
                    "Origin": "https://app.example", "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "content-type,x-own",
                ])
            #expect(preflight.status == 204)
            #expect(preflight.headers[.accessControlAllowOrigin] == "https://app.example")
            #expect(preflight.headers[.accessControlAllowCredentials] == "true")
            #expect(preflight.headers[.accessControlAllowHeaders] == "content-type,x-own")
            let plain = try await relay.call(.get, "/healthz")
            #expect(plain.headers[.accessControlAllowOrigin] == "*")
            #expect(plain.headers[.accessControlAllowCredentials] == nil)
            let courier = try await relay.call(
                .get, "/courier/1/x", headers: ["Origin": "https://app.example"])
            #expect(courier.headers[.accessControlAllowOrigin] == "https://app.example")
        }
    }
}
