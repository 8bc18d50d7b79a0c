import Crypto
import HTTPTypes
import RelayModel
import RelayServer
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// Signatures made with `openssl dgst -sha256 -sign` over the strings that the four clients sign.
enum SignatureVectors {
    static let keyID = "5c5ba2e12dd7f64bd8dd0c9fb2a8e0ac5e0d9a1cb0b6a0a4b4a6a5e2f1b5f7c3"
    static let publicKey = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEh7dELfNN7ZYJd/24WgbubHU0jvXR
        2VwBaLo67DWZUoKhS2UF/9I0BE/mj8jBQot8v8z+bQSMhCZnewt26blwsA==
        -----END PUBLIC KEY-----
        """
    static let date = "2016-01-25T22:15:43Z"
    static let body = #"{"operations":[]}"#
    static let path = "/database/1/iCloud.com.example.Art/development/public"
    static let query = "?ckjsBuildVersion=16HProjectDev83&ckjsVersion=1.2.0"
    static let modifyWithQuery =
        "MEYCIQDD0WP5L+eVVwx3y1oqlgtsMNDTQE2gP9MRkg57BVkMsQIhAO8Qqd74u9QujUlDJoY7yyNu0gwI2Zk"
        + "7CEZVXyGknBIV"
    static let modify =
        "MEQCIDFhV9IzDA3XepJWo8QkMZpGD1tW9krc4fDEbWNnnvAPAiBN1VdZRowOAvR48YqpvwWFnT/xlJcVuDF"
        + "UvXgxJIOjQQ=="
    static let currentWithQuery =
        "MEQCIGGvWaWnM0C0Mq//QeiTQBUdnkMmRR/nfBk3IaPDqL4SAiBAMz5kSVW0E70xDQxsz+jmXX0GxDHQuuT"
        + "Z9l05OjC3QQ=="
    static let listWithHash =
        "MEUCIQDz8JHn8SmopYBOcaTSaNDvwvQ37KJp2+RCNG9btWa1uQIgZ/fXGDQmJODQUkIlAHFNcbH+wqrzH1Q"
        + "4ydAgS0fQXTQ="
    static let listWithNothing =
        "MEYCIQDsz+yUBK7F5QLf4u3Ex2vDHrayXm4cbAODx9zPRRXwmgIhANRhlupWhtrKXkY9hH1PIQIpr8L90nZ"
        + "AhHd+p0k25dUa"
    static let modifyOverEmptyBody =
        "MEYCIQCTrL29htLGS2WIYrbXpE9XfwtmNMCz+XW7auHNSshw7wIhAM6fIEs8//yPawlmWVnKTte2rJARhY1"
        + "mMESbOyAbwdOi"
    static let modifyWithHexadecimalHash =
        "MEQCIGNUqdP/2vTAo+UMIgYM9l7XVTBnpSJhjFRwNz7uLkviAiAxaBW5vLWz9IDWPQYCwWTfZdmDrdVMjlK"
        + "XvRNU3J6FXg=="
    static let modifyWithHost =
        "MEYCIQDOA06MO8SJPiDqDT2ZYhMfBr4/ZtoyU76Qq9BgVEiVIwIhAOYFX+EjtmZABfx9PMO2GJ5aIe666+s"
        + "iMhadhfHdhI/B"

    static let key = AccessKey(
        id: keyID, container: TestRelay.container, kind: .serverToServer, verifier: publicKey,
        label: "server", createdAt: TestRelay.now)

    static func headers(
        _ signature: String, keyID: String? = Self.keyID, date: String? = Self.date
    ) -> [String: String] {
        var headers = ["X-Apple-CloudKit-Request-SignatureV1": signature]
        headers["X-Apple-CloudKit-Request-KeyID"] = keyID
        headers["X-Apple-CloudKit-Request-ISO8601Date"] = date
        return headers
    }
}

@Suite struct ServerSignatureTests {
    /// A request and the expected result of its verification; `nil` is success.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var target: String
        var signature: String
        var body = ""
        var keyID: String? = SignatureVectors.keyID
        var date: String? = SignatureVectors.date
        var seconds: Int64 = 0
        var refusal: SignatureRefusal?
    }

    private static let vectors = SignatureVectors.self
    private static let modify = SignatureVectors.path + "/subscriptions/modify"
    private static let list = SignatureVectors.path + "/subscriptions/list"

    static let clients = [
        Case(
            testDescription: "CloudKit JS signs path and query",
            target: modify + vectors.query, signature: vectors.modifyWithQuery,
            body: vectors.body),
        Case(
            testDescription: "CloudKit JS hashes the absent body",
            target: vectors.path + "/users/current" + vectors.query,
            signature: vectors.currentWithQuery),
        Case(
            testDescription: "requests-cloudkit and OpenCloudKit sign the path",
            target: modify, signature: vectors.modify, body: vectors.body),
        Case(
            testDescription: "a bodyless request with the hash of nothing", target: list,
            signature: vectors.listWithHash),
        Case(
            testDescription: "MistKit puts nothing in the hash's place", target: list,
            signature: vectors.listWithNothing),
        Case(
            testDescription: "ten minutes late", target: list, signature: vectors.listWithHash,
            seconds: 600),
        Case(
            testDescription: "ten minutes early", target: list, signature: vectors.listWithHash,
            seconds: -600),
    ]

    static let mistakes = [
        Case(
            testDescription: "a query that was added to a signed path",
            target: modify + vectors.query, signature: vectors.modify, body: vectors.body,
            refusal: .mismatch(
                hint: "it was made over the path alone, but the query must be signed too")),
        Case(
            testDescription: "no key ID", target: list, signature: vectors.listWithHash,
            keyID: nil, refusal: .missingHeader("X-Apple-CloudKit-Request-KeyID")),
        Case(
            testDescription: "no date", target: list, signature: vectors.listWithHash, date: nil,
            refusal: .missingHeader("X-Apple-CloudKit-Request-ISO8601Date")),
        Case(
            testDescription: "an unknown key", target: list, signature: vectors.listWithHash,
            keyID: "another", refusal: .unknownKeyID),
        Case(
            testDescription: "a date that is none", target: list,
            signature: vectors.listWithHash, date: "25 Jan 2016", refusal: .malformedDate),
        Case(
            testDescription: "more than ten minutes late", target: list,
            signature: vectors.listWithHash, seconds: 601, refusal: .dateTooOld(seconds: 601)),
        Case(
            testDescription: "more than ten minutes early", target: list,
            signature: vectors.listWithHash, seconds: -601, refusal: .dateTooNew(seconds: 601)),
        Case(
            testDescription: "another date than the signed one", target: list,
            signature: vectors.listWithHash, date: "2016-01-25T22:15:44Z",
            refusal: .mismatch(hint: nil)),
        Case(
            testDescription: "no base64", target: list, signature: "***",
            refusal: .malformedSignature("base64")),
        Case(
            testDescription: "no DER", target: list, signature: "AAAA",
            refusal: .malformedSignature("an ECDSA signature in DER form")),
        Case(
            testDescription: "another path", target: list, signature: vectors.modify,
            refusal: .mismatch(hint: nil)),
        Case(
            testDescription: "another body", target: modify, signature: vectors.modify,
            body: #"{"operations":[{}]}"#, refusal: .mismatch(hint: nil)),
        Case(
            testDescription: "a body that was left out of the signature", target: modify,
            signature: vectors.modifyOverEmptyBody, body: vectors.body,
            refusal: .mismatch(
                hint: "it was made over an empty body, but this request's body has 17 bytes")),
        Case(
            testDescription: "a hash in hexadecimal digits", target: modify,
            signature: vectors.modifyWithHexadecimalHash, body: vectors.body,
            refusal: .mismatch(
                hint: "the body's hash must be in base64, not in hexadecimal digits")),
        Case(
            testDescription: "a path with scheme and host", target: modify,
            signature: vectors.modifyWithHost, body: vectors.body,
            refusal: .mismatch(hint: "the path must be signed without scheme and host")),
    ]

    @Test(arguments: clients + mistakes)
    func `a signature is accepted exactly if it is valid`(_ one: Case) throws {
        #expect(refusal(one, key: SignatureVectors.key) == one.refusal)
    }

    @Test func `a revoked key is refused as revoked`() throws {
        var key = SignatureVectors.key
        key.revokedAt = TestRelay.now
        #expect(refusal(Self.clients[0], key: key) == .revokedKey)
    }

    /// Returns the other valid signature: for (r, s), anybody can compute (r, n − s), which is
    /// valid too.
    static func second(_ signature: String) throws -> String {
        let order =
            Hexadecimal.decode(
                "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551") ?? []
        let der = try #require(Base64.decode(signature))
        var raw = Array(try P256.Signing.ECDSASignature(derRepresentation: der).rawRepresentation)
        var borrow = 0
        for index in (0..<32).reversed() {
            let digit = Int(order[index]) - Int(raw[32 + index]) - borrow
            borrow = digit < 0 ? 1 : 0
            raw[32 + index] = UInt8(digit & 255)
        }
        let other = try P256.Signing.ECDSASignature(rawRepresentation: raw)
        return Base64.encode(Array(other.derRepresentation))
    }

    @Test func `a copied request that changes something is processed once`() async throws {
        try await TestRelay.with { relay in
            func modify(_ signature: String) async throws -> TestRelay.Answer {
                try await relay.call(
                    .post, Self.modify, headers: SignatureVectors.headers(signature),
                    body: SignatureVectors.body)
            }
            #expect(try await modify(SignatureVectors.modify).status == 200)
            for copy in [SignatureVectors.modify, try Self.second(SignatureVectors.modify)] {
                let answer = try await modify(copy)
                #expect(answer.status == 401)
                #expect(
                    answer["reason"]
                        == .string(
                            "server-to-server signature: it was already used, and each request "
                                + "that "
                                + "changes something needs a new signature; sign every request "
                                + "again"))
            }
            // A request that only reads may be repeated.
            for _ in 0..<2 {
                let list = try await relay.call(
                    .get, Self.list,
                    headers: SignatureVectors.headers(SignatureVectors.listWithHash))
                #expect(list.status == 200)
            }
        }
    }

    @Test func `a copied request is processed once however its key is spelled`() async throws {
        try await TestRelay.with { relay in
            var other = SignatureVectors.key
            other.id = "1K"
            try await relay.store.save(other)
            var statuses: [Int] = []
            // The Kelvin sign equals a K if the texts are compared as Swift strings.
            for id in [SignatureVectors.keyID, "1K", "1\u{212A}"] {
                let answer = try await relay.call(
                    .post, Self.modify,
                    headers: SignatureVectors.headers(SignatureVectors.modify, keyID: id),
                    body: SignatureVectors.body)
                statuses.append(answer.status)
            }
            #expect(statuses == [200, 401, 401])
        }
    }

    @Test func `a used signature is remembered as long as it is valid`() async throws {
        try await TestRelay.with { relay in
            let nonce = [UInt8](repeating: 7, count: 32)
            func use(_ until: Int64, _ now: Int64) async throws -> Bool {
                try await relay.store.useSignature(
                    nonce, of: TestRelay.container, until: Timestamp(seconds: until),
                    at: Timestamp(seconds: now))
            }
            let first = try await use(100, 0)
            let again = try await use(100, 100)
            let later = try await use(300, 101)
            #expect([first, again, later] == [true, false, true])
        }
    }

    private func refusal(_ one: Case, key: AccessKey) -> SignatureRefusal? {
        var fields = HTTPFields()
        let headers = SignatureVectors.headers(one.signature, keyID: one.keyID, date: one.date)
        for (name, value) in headers { fields[HTTPField.Name.named(name)] = value }
        fields[HTTPField.Name.named("Host")] = "relay.example"
        let request = RelayRequest(
            method: one.body.isEmpty ? "GET" : "POST", target: one.target, headers: fields,
            body: Array(one.body.utf8), uuid: "test",
            receivedAt: TestRelay.now.advanced(by: .seconds(one.seconds)))
        do throws(SignatureRefusal) {
            try ServerSignature(request)?.verify(request, keys: [key])
            return nil
        } catch {
            return error
        }
    }
}
