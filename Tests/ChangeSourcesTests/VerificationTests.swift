import Crypto
import RelayModel
import Testing

@testable import ChangeSources

private let published = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
private let own = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

private func verifying(
    _ verification: String, preset: String = "belfry"
) throws -> ChangeSource {
    try ChangeSource(
        json: JSONValue(
            parsing: """
                {"name": "s", "preset": "\(preset)", "verification": \(verification),
                 "mapping": \(preset == "minapp" ? #"{"table": {"constant": "t"}}"# : "{}")}
                """))
}

private func standard(_ secrets: String...) throws -> ChangeSource {
    let list = secrets.map { "{\"secret\": \"\($0)\"}" }.joined(separator: ",")
    return try verifying("{\"scheme\": \"standardWebhooks\", \"secrets\": [\(list)]}")
}

private func signed(
    _ signature: String, id: String = "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestamp: String = "1614265330", body: String = #"{"test": 2432232314}"#,
    at seconds: Int64 = 1_614_265_330
) -> WebhookRequest {
    WebhookRequest(
        headers: [
            "Webhook-Id": id, "Webhook-Timestamp": timestamp, "Webhook-Signature": signature,
        ], body: Array(body.utf8), receivedAt: Timestamp(seconds: seconds))
}

private func failure(_ source: ChangeSource, _ request: WebhookRequest) -> VerificationError? {
    do {
        _ = try source.verify(request)
        return nil
    } catch {
        return error
    }
}

/// A part of a recipe.
private let lineBreak = #"{"literal": "\n"}"#

private func header(_ name: String) -> String { #"{"header": "\#(name)"}"# }

@Suite struct BinaryEventTests {
    private let attributes: WebhookHeaders = [
        "ce-specversion": "1.0", "ce-id": "e-1", "ce-source": "/shop",
        "ce-type": "com.example.record.updated", "ce-subject": "Order/7",
    ]

    private func request(
        _ headers: WebhookHeaders, at seconds: Int64 = 1_614_265_330
    )
        -> WebhookRequest
    {
        var all = attributes
        for name in headers.names { all.append(name, headers[name] ?? "") }
        return WebhookRequest(
            headers: all, body: Array(#"{"test": 2432232314}"#.utf8),
            receivedAt: Timestamp(seconds: seconds))
    }

    @Test func `attributes that the signature does not cover are refused`() throws {
        let source = try verifying(
            #"{"scheme": "standardWebhooks", "secrets": [{"secret": "\#(published)"}]}"#,
            preset: "cloudevents")
        let headers: WebhookHeaders = [
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ]
        #expect(failure(source, request(headers)) == .unsignedHeader("ce-id"))
        // In structured mode the body contains the whole event.
        let structured = WebhookRequest(
            headers: headers, body: Array(#"{"test": 2432232314}"#.utf8),
            receivedAt: Timestamp(seconds: 1_614_265_330))
        #expect(failure(source, structured) == nil)
        // Headers that repeat the event's attributes are not read in structured mode.
        var repeated = request(headers)
        repeated.headers.append("Content-Type", "application/cloudevents+json")
        #expect(failure(source, repeated) == nil)
    }

    private let key = "a secret of some length"

    /// Returns a source that signs `parts`, read as a stored one.
    private func signing(_ parts: [String]) throws -> ChangeSource {
        try verifying(
            #"{"scheme": "signature", "header": "x-signature", "parts": "#
                + "[\(parts.joined(separator: ","))]"
                + #", "algorithm": "hmac-sha256", "output": "hex", "#
                + #""secrets": [{"secret": "\#(key)"}]}"#,
            preset: "cloudevents")
    }

    private func signature(of text: String) -> String {
        let code = HMAC<SHA256>.authenticationCode(
            for: Array(text.utf8), using: SymmetricKey(data: Array(key.utf8)))
        return Hexadecimal.encode(code)
    }

    /// Returns recipe parts for `names` and the body, with a line break after each name.
    private func lines(_ names: [String]) -> [String] {
        names.flatMap { [header($0), lineBreak] } + [#""body""#]
    }

    @Test func `a recipe must cover every attribute to be accepted`()
        throws
    {
        func signed(_ names: [String]) -> WebhookRequest {
            let text = names.map { "\(attributes[$0] ?? "")\n" }.joined()
            return request(["x-signature": signature(of: text + #"{"test": 2432232314}"#)])
        }
        let all = attributes.names
        #expect(failure(try signing(lines(all)), signed(all)) == nil)
        // Another content type does not turn the body into the event.
        var other = signed(all)
        other.headers.append("Content-Type", "application/cloudevents+json")
        #expect(try signing(lines(all)).isEventInBinaryMode(other))
        try signing(lines(all)).checkSeams()
        let without = all.filter { $0 != "ce-type" }
        #expect(
            failure(try signing(lines(without)), signed(without)) == .unsignedHeader("ce-type"))
    }

    @Test func `bytes that move from one attribute to the next are refused`() throws {
        let names = ["ce-specversion", "ce-type", "ce-source", "ce-id", "ce-subject"]
        let moved = [
            ("ce-source", "/shope", "ce-id", "-1"), ("ce-id", "e-1Or", "ce-subject", "der/7"),
        ]
        for isApart in [true, false] {
            let plain = [#""body""#] + names.map(header)
            let parts = isApart ? lines(names) : plain
            let source = try signing(parts)
            let body = #"{"test": 2432232314}"#
            let values = names.map { attributes[$0] ?? "" }
            let text =
                isApart ? values.map { "\($0)\n" }.joined() + body : body + values.joined()
            let sent = signature(of: text)
            for (first, firstValue, second, secondValue) in moved {
                var headers: WebhookHeaders = ["x-signature": sent]
                for name in names where name != first && name != second {
                    headers.append(name, attributes[name] ?? "")
                }
                headers.append(first, firstValue)
                headers.append(second, secondValue)
                let copy = WebhookRequest(
                    headers: headers, body: Array(body.utf8),
                    receivedAt: Timestamp(seconds: 1_614_265_330))
                let refused = try #require(failure(source, copy))
                if isApart {
                    #expect(refused == .signatureMismatch(header: "x-signature"))
                } else {
                    #expect("\(refused)".contains("parts[1]: the header ce-specversion"))
                }
            }
            // A source with such a recipe from before is not believed at all in binary mode.
            let original = failure(source, request(["x-signature": sent]))
            #expect((original == nil) == isApart)
        }
    }

    @Test(arguments: [
        ([header("ce-id"), header("ce-source"), lineBreak, #""body""#], 1),
        ([header("ce-id"), #"{"literal": "."}"#, header("ce-source"), lineBreak, #""body""#], 2),
        ([header("ce-id"), lineBreak, header("ce-source"), #""body""#], 3),
        ([#""body""#, header("ce-id")], 1),
        ([#""url""#, header("CE-ID"), lineBreak, #""body""#], 1),
        ([header("x-time"), #""secret""#, header("ce-id"), lineBreak, #""body""#], 2),
        ([#""body""#, lineBreak, header("ce-id"), #"{"literal": ""}"#, header("x-time")], 4),
    ])
    func `a recipe that lets bytes move is not saved`(parts: [String], place: Int) throws {
        let error = #expect(throws: JSONContractError.self) {
            try signing(parts).checkSeams()
        }
        #expect(error?.path == "verification.parts[\(place)]")
        #expect(error?.reason.contains("without a line break") == true)
    }

    @Test(arguments: [
        [header("ce-id"), lineBreak, #""body""#], [#""body""#, lineBreak, header("ce-id")],
        [#""body""#, #"{"literal": "\r\n"}"#, header("ce-id"), #""secret""#], [#""body""#],
        [header("x-time"), #"{"literal": "."}"#, #""body""#, lineBreak, header("ce-id")],
        [header("ce-id"), #"{"literal": "\nat "}"#, header("ce-source"), lineBreak, #""body""#],
    ])
    func `a recipe that separates the attributes is saved`(parts: [String]) throws {
        try signing(parts).checkSeams()
    }

    @Test func `attributes need no signature if the request has the secret itself`() throws {
        let source = try verifying(
            #"{"scheme": "bearer", "secrets": [{"secret": "a secret of some length"}]}"#,
            preset: "cloudevents")
        #expect(
            failure(source, request(["authorization": "Bearer a secret of some length"])) == nil)
    }
}

@Suite struct StandardWebhooksTests {
    private let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    private let mismatch = VerificationError.signatureMismatch(header: "webhook-signature")

    @Test func `the published vector is accepted`() throws {
        let outcome = try standard(published).verify(signed(good))
        #expect(outcome == VerificationOutcome(secretIndex: 0))
    }

    @Test func `our own vector is accepted`() throws {
        let request = signed(
            "v1,5poZocKtQngiunRjkig16pm5xFabFqTvbp3bqx6yMPk=", id: "msg_0001",
            timestamp: "1700000000", body: #"{"op":"update","type":"Artwork","id":"a1"}"#,
            at: 1_700_000_000)
        let outcome = try standard(own).verify(request)
        #expect(outcome.secretIndex == 0)
    }

    @Test func `the relay accepts what it signs`() throws {
        let signature = StandardWebhooks.signature(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330",
            body: Array(#"{"test": 2432232314}"#.utf8), secret: published)
        #expect(signature == good)
    }

    @Test func `the body is signed byte for byte`() throws {
        let source = try standard(published)
        #expect(failure(source, signed(good, body: #"{"test":2432232314}"#)) == mismatch)
    }

    @Test func `either secret is accepted during a rotation, and is named`() throws {
        let source = try standard(own, published)
        let outcome = try source.verify(signed("v1,AAAA v2,zzzz \(good)"))
        #expect(outcome.secretIndex == 1)
    }

    @Test func `an ended secret is refused`() throws {
        let list = """
            [{"secret": "\(published)", "until": 1614265330000}, {"secret": "\(own)"}]
            """
        let source = try verifying(
            "{\"scheme\": \"standardWebhooks\", \"secrets\": \(list)}")
        #expect(failure(source, signed(good, at: 1_614_265_330)) == mismatch)
        let earlier = try source.verify(signed(good, at: 1_614_265_329))
        #expect(earlier.secretIndex == 0)
    }

    @Test func `a source whose secrets have all ended reports this`() throws {
        let source = try verifying(
            """
            {"scheme": "standardWebhooks", "secrets": [{"secret": "\(published)", "until": 1}]}
            """)
        #expect(failure(source, signed(good)) == .noLiveSecret)
    }

    @Test func `the timestamp may differ by five minutes either way`() throws {
        let source = try standard(published)
        let header = "webhook-timestamp"
        let tolerance = Duration.seconds(300)
        #expect(failure(source, signed(good, at: 1_614_265_630)) == nil)
        #expect(failure(source, signed(good, at: 1_614_265_030)) == nil)
        #expect(
            failure(source, signed(good, at: 1_614_265_631))
                == .timestampTooOld(header: header, tolerance: tolerance))
        #expect(
            failure(source, signed(good, at: 1_614_265_029))
                == .timestampTooNew(header: header, tolerance: tolerance))
    }

    @Test(arguments: ["now", "", "-1", "1e9", "16142653300000", "１６１４２６５３３０", "1614265330.0"])
    func `a malformed timestamp is named`(text: String) throws {
        let expected: VerificationError =
            text.isEmpty
            ? .missingHeader("webhook-timestamp")
            : .malformedHeader("webhook-timestamp", rule: "whole seconds since 1970")
        #expect(failure(try standard(published), signed(good, timestamp: text)) == expected)
    }

    @Test func `every header is required, and a missing one is named`() throws {
        let source = try standard(published)
        var request = signed(good)
        request.headers = ["webhook-id": "m", "webhook-timestamp": "1614265330"]
        #expect(failure(source, request) == .missingHeader("webhook-signature"))
        request.headers = ["webhook-timestamp": "1614265330", "webhook-signature": good]
        #expect(failure(source, request) == .missingHeader("webhook-id"))
    }

    @Test func `Svix's own headers are read if the standard ones are missing`() throws {
        let source = try standard(published)
        var request = signed(good)
        let own: WebhookHeaders = [
            "Svix-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "Svix-Timestamp": "1614265330",
            "Svix-Signature": good,
        ]
        request.headers = own
        #expect(failure(source, request) == nil)
        #expect(source.transportKey(request.headers) == "msg_p5jXN8AQM9LWM0D4loKWxJek")
        // An attacker who copied a request cannot give it another ID.
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            request.headers = own
            request.headers.append(name, "other")
            #expect(failure(source, request) != nil, "\(name)")
        }
        request.headers = ["svix-id": "m", "svix-timestamp": "1614265330", "svix-signature": good]
        #expect(failure(source, request) == .signatureMismatch(header: "svix-signature"))
        request.headers = ["svix-id": "m", "svix-signature": good]
        #expect(failure(source, request) == .missingHeader("svix-timestamp"))
    }

    @Test func `an ID with a dot is refused`() throws {
        #expect(
            failure(try standard(published), signed(good, id: "a.b"))
                == .malformedHeader("webhook-id", rule: "1 to 255 bytes without a dot"))
    }

    @Test(arguments: [
        "v1", "v1,", "v1,!!!", "g0hM9SsE", "v0,AAAA", "v1a,AAAA", "v1,AAAA", "v1=g0hM9SsE",
        "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1,83484cf52b04f8e4cf2531adfed9882ad4b2665137b852442d594d20e2c9d4e1",
    ])
    func `a signature of an unknown version is refused with the expected form`(
        signature: String
    ) throws {
        #expect(
            failure(try standard(published), signed(signature))
                == .malformedHeader(
                    "webhook-signature", rule: "\"v1,\" and an HMAC-SHA256 in Base64"))
    }

    @Test func `an ed25519 signature is verified with its public key`() throws {
        let key = Curve25519.Signing.PrivateKey()
        let publicKey = "whpk_" + Base64.encode(Array(key.publicKey.rawRepresentation))
        let bytes = Array("m1.1700000000.{}".utf8)
        let signature = Base64.encode(Array(try key.signature(for: bytes)))
        let source = try standard(publicKey)
        let request = signed(
            "v1a,\(signature)", id: "m1", timestamp: "1700000000", body: "{}", at: 1_700_000_000)
        #expect(failure(source, request) == nil)
        var other = request
        other.body = Array("{ }".utf8)
        #expect(failure(source, other) == mismatch)
    }
}

@Suite struct OtherSchemesTests {
    @Test func `Appwrite signs its URL and the body with SHA-1`() throws {
        let source = try verifying(
            """
            {"scheme": "appwrite", "url": "https://relay.example/in/appwrite",
             "secrets": [{"secret": "appwrite-key"}]}
            """)
        var request = webhook(
            #"{"$id":"a1"}"#,
            headers: ["x-appwrite-webhook-signature": "cZVFBu5nN7mhvZOqyRkgV87DeiE="])
        #expect(failure(source, request) == nil)
        request.body.append(0x20)
        let refused = failure(source, request)
        #expect(refused == .signatureMismatch(header: "X-Appwrite-Webhook-Signature"))
        // The relay never showed this secret, and the URL is what most often differs.
        let said = refused?.description ?? ""
        #expect(said.contains("the signature key of the webhook in Appwrite's console"))
        #expect(said.contains("that the URL there is the one that belfry sources show prints"))
        #expect(!said.contains("showed last"))
        let airtable = VerificationError.signatureMismatch(header: "X-Airtable-Content-MAC")
        #expect(airtable.description.contains("the macSecretBase64 that Airtable returned"))
        #expect(!airtable.description.contains("showed last"))
    }

    @Test func `Wilddog's digest covers the body, the request ID and the secret`() throws {
        let source = try verifying(
            """
            {"scheme": "signature", "header": "wilddog-webhook-signature", "algorithm": "sha256",
             "parts": ["body", {"header": "wilddog-webhook-request-id"}, "secret"],
             "output": "hex", "secrets": [{"secret": "secret1"}]}
            """)
        let request = webhook(
            #"{"action":{"op":"PUT","path":"/a","data":1},"result":{"path":"/a","data":1}}"#,
            headers: [
                "wilddog-webhook-request-id": "app1-0001",
                "wilddog-webhook-signature":
                    "b1c7b570a049cf626ada118b3b8094a202cb02f5755fde4ee981cc5fcb938688",
            ])
        #expect(failure(source, request) == nil)
    }

    @Test func `Airtable's key is base64, and its signature is hexadecimal`() throws {
        let source = try verifying(
            """
            {"scheme": "signature", "header": "X-Airtable-Content-MAC", "prefix": "hmac-sha256=",
             "algorithm": "hmac-sha256", "parts": ["body"], "keyEncoding": "base64",
             "output": "hex", "secrets": [{"secret": "AAECAwQFBgcICQoLDA0ODw=="}]}
            """)
        let body =
            #"{"base":{"id":"appX"},"webhook":{"id":"achX"},"#
            + #""timestamp":"2026-01-02T03:04:05.000Z"}"#
        let mac = "d424d0c1309b94605b390b97e037b617dedd7814fdf95aa0b200a27bbaa44526"
        let header = "X-Airtable-Content-MAC"
        #expect(failure(source, webhook(body, headers: [header: "hmac-sha256=\(mac)"])) == nil)
        for wrong in [mac, "hmac-sha256=1CTQwTCblGBbOQuX", "hmac-sha256="] {
            let found = failure(source, webhook(body, headers: [header: wrong]))
            #expect(
                found
                    == (wrong == "hmac-sha256="
                        ? .signatureMismatch(header: header)
                        : .malformedHeader(
                            header, rule: "\"hmac-sha256=\" and a signature in hex")))
        }
    }

    @Test func `Minapp's body is a token signed with HS256`() throws {
        let source = try verifying(
            #"{"scheme": "minapp", "secrets": [{"secret": "webhook-secret"}]}"#, preset: "minapp")
        let token =
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJfaWQiOiI1ZjAwIiwidGl0bGUiOiJ4In0"
            + ".mAHVSQBVW0j8WjaeWQNr0DElEtsJIQwYMkcSJkelFwg"
        #expect(failure(source, webhook(token)) == nil)
        #expect(failure(source, webhook(" \r\n\(token)\r\n \t\n")) == nil)
        #expect(failure(source, webhook(token + "A")) == .tokenMismatch)
        let parts = token.split(separator: ".")
        let other = Base64.encode(Array(#"{"_id":"5f01","title":"x"}"#.utf8))
        #expect(failure(source, webhook("\(parts[0]).\(other).\(parts[2])")) == .tokenMismatch)
        for algorithm in ["none", "None", "RS256", "HS384", "ES256", ""] {
            let header = Base64.encode(Array("{\"alg\":\"\(algorithm)\"}".utf8))
            let forged = "\(header).\(parts[1])."
            #expect(failure(source, webhook(forged)) == .tokenAlgorithm)
        }
        let critical = Base64.encodeToken(
            Array(#"{"alg":"HS256","b64":false,"crit":["b64"]}"#.utf8))
        #expect(failure(source, webhook("\(critical).\(parts[1]).x_")) == .malformedToken)
        #expect(failure(source, webhook("{}")) == .malformedToken)
    }

    @Test func `a static secret is compared as a whole`() throws {
        let source = try verifying(
            """
            {"scheme": "header", "header": "X-Parse-Webhook-Key",
             "secrets": [{"secret": "old"}, {"secret": "new"}]}
            """)
        func answer(_ value: String) -> VerificationError? {
            failure(source, webhook("{}", headers: ["x-parse-webhook-key": value]))
        }
        #expect(answer("old") == nil)
        #expect(answer("new") == nil)
        #expect(answer("ne") == .secretMismatch(header: "X-Parse-Webhook-Key"))
        #expect(answer("") == .missingHeader("X-Parse-Webhook-Key"))
        let twice = WebhookRequest(
            headers: ["x-parse-webhook-key": "bad", "X-Parse-Webhook-Key": "new"], body: [],
            receivedAt: now)
        #expect(failure(source, twice) == .secretMismatch(header: "X-Parse-Webhook-Key"))
    }

    @Test func `a bearer token is compared as a whole`() throws {
        let source = try verifying(
            #"{"scheme": "bearer", "secrets": [{"secret": "t0ken"}]}"#, preset: "debezium")
        func answer(_ value: String) -> VerificationError? {
            failure(source, webhook("{}", headers: ["authorization": value]))
        }
        #expect(answer("Bearer t0ken") == nil)
        #expect(answer("bearer t0ken") == nil)
        #expect(answer("Bearer t0keN") == .secretMismatch(header: "Authorization"))
        #expect(
            answer("Basic dDpw")
                == .malformedHeader(
                    "Authorization", rule: "\"Bearer\", a space and the token"))
    }

    @Test func `a signed time is checked against the clock`() throws {
        let source = try verifying(
            """
            {"scheme": "signature", "header": "X-Sig", "algorithm": "hmac-sha256", "output": "hex",
             "parts": [{"literal": "v0:"}, {"header": "X-Time"}, {"literal": ":"}, "body"],
             "timestampHeader": "x-time", "toleranceSeconds": 10, "secrets": [{"secret": "k"}]}
            """)
        func request(_ time: String) -> WebhookRequest {
            let code = HMAC<SHA256>.authenticationCode(
                for: Array("v0:\(time):{}".utf8), using: SymmetricKey(data: Array("k".utf8)))
            return webhook("{}", headers: ["X-Time": time, "X-Sig": Hexadecimal.encode(code)])
        }
        #expect(failure(source, request("1700000010")) == nil)
        #expect(
            failure(source, request("1699999989"))
                == .timestampTooOld(header: "x-time", tolerance: .seconds(10)))
    }

    @Test func `no secret is ever printed`() throws {
        let source = try standard(published)
        let texts = ["\(source)", String(reflecting: source)]
        var dumped = ""
        dump(source, to: &dumped)
        for text in texts + [dumped, JSONValue.object(source.shownJSON).text] {
            #expect(!text.contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        }
        #expect(JSONValue.object(source.json).text.contains(published))
    }
}
