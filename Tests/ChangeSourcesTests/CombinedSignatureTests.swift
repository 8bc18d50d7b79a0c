import RelayModel
import Testing

@testable import ChangeSources

/// Stripe's signature, which has the time and all signatures in one header.
@Suite struct CombinedSignatureTests {
    private static let secret = "whsec_test_secret"
    private static let body = #"{"id": "evt_test_webhook", "object": "event"}"#
    private static let now: Int64 = 1_492_774_577

    private static func source(_ more: String = "", secrets: String...) throws -> ChangeSource {
        let list = (secrets.isEmpty ? [secret] : secrets)
            .map { #"{"secret": "\#($0)"}"# }.joined(separator: ",")
        return try ChangeSource(
            json: JSONValue(
                parsing: """
                    {"name": "s", "preset": "belfry", "mapping": {},
                     "verification": {"scheme": "stripe", "secrets": [\(list)]\(more)}}
                    """))
    }

    private static func request(
        _ values: String..., header: String = "Stripe-Signature", body: String = body,
        at seconds: Int64 = now
    ) -> WebhookRequest {
        var headers: WebhookHeaders = [:]
        for value in values { headers.append(header, value) }
        return WebhookRequest(
            headers: headers, body: Array(body.utf8), receivedAt: Timestamp(seconds: seconds))
    }

    private static func failure(
        _ source: ChangeSource, _ request: WebhookRequest
    ) -> VerificationError? {
        do {
            _ = try source.verify(request)
            return nil
        } catch {
            return error
        }
    }

    /// Returns the header value that a sender with `secret` sends now.
    private static func value(_ secret: String = secret, body: String = body) -> String {
        CombinedSignature.value(time: "\(now)", body: Array(body.utf8), secret: secret)
    }

    /// The signature that OpenSSL makes of "1492774577." and the body, with the secret as written.
    private static let known =
        "t=1492774577,v1=c137b1b62277d523cf8fed4dfbd0170a9a5b8a380e00cc3711d4bf0652f2ce7a"

    @Test func `a signature made by OpenSSL is accepted`() throws {
        #expect(Self.value() == Self.known)
        #expect(Self.failure(try Self.source(), Self.request(Self.known)) == nil)
    }

    @Test func `one of several signatures suffices, and other versions are skipped`() throws {
        let source = try Self.source()
        let other = Self.value("whsec_another").split(separator: ",")[1]
        let own = Self.value()
        for value in [
            "\(own),\(other)", "\(own),v0=6ffbb59b", own.replacing(",", with: ",\(other),"),
            own.replacing(",", with: ", "), "v0=zz, \(own)", "\(own),\(own)",
        ] {
            #expect(Self.failure(source, Self.request(value)) == nil, "\(value)")
        }
        // Two header lines are the same as one line with a comma.
        let parts = own.split(separator: ",").map(String.init)
        #expect(Self.failure(source, Self.request(parts[0], parts[1])) == nil)
        #expect(
            Self.failure(source, Self.request("t=\(Self.now),\(other)"))
                == .signatureMismatch(header: "Stripe-Signature"))
        // The sender may still use the old secret.
        let both = try Self.source(secrets: "whsec_new", Self.secret)
        #expect(try both.verify(Self.request(own)) == VerificationOutcome(secretIndex: 1))
    }

    @Test func `a hostile header is read up to a bound`() throws {
        let source = try Self.source()
        let other = Self.value("whsec_another").split(separator: ",")[1]
        let own = Self.value().split(separator: ",")
        for (count, fits) in [(7, true), (8, false), (10_000, false)] {
            let others = Array(repeating: String(other), count: count).joined(separator: ",")
            let error = Self.failure(source, Self.request("\(own[0]),\(others),\(own[1])"))
            #expect((error == nil) == fits, "\(count)")
        }
    }

    @Test(arguments: [
        "", "v1=00", "t=1492774577", "t=1492774577,v1=", "t=1492774577,v1=zz", "t=x,v1=0",
        "1492774577", "t=1492774577,v1=00",
    ])
    func `a header without a time and signatures is malformed`(value: String) throws {
        switch Self.failure(try Self.source(), Self.request(value)) {
        case .missingHeader("Stripe-Signature")?, .malformedHeader("Stripe-Signature", _)?: break
        case let error: Issue.record("\(value): \(String(describing: error))")
        }
    }

    @Test func `the time and the body are signed, and two times are refused`() throws {
        let source = try Self.source()
        let own = Self.value()
        let header = "Stripe-Signature"
        #expect(
            Self.failure(source, Self.request(own, body: "{}"))
                == .signatureMismatch(header: header))
        #expect(
            Self.failure(source, Self.request(own, at: Self.now + 301))
                == .timestampTooOld(header: header, tolerance: .seconds(300)))
        #expect(
            Self.failure(source, Self.request(own, at: Self.now - 301))
                == .timestampTooNew(header: header, tolerance: .seconds(300)))
        let later = own.replacing("t=\(Self.now)", with: "t=\(Self.now + 1)")
        #expect(
            Self.failure(source, Self.request(later)) == .signatureMismatch(header: header))
        guard case .malformedHeader? = Self.failure(source, Self.request(own, later)) else {
            Issue.record("two times")
            return
        }
    }

    @Test func `other senders use headers of other names`() throws {
        let source = try Self.source(#", "header": "Mux-Signature", "toleranceSeconds": 60"#)
        let own = Self.value()
        #expect(Self.failure(source, Self.request(own, header: "mux-signature")) == nil)
        #expect(
            Self.failure(source, Self.request(own, header: "Mux-Signature", at: Self.now + 61))
                == .timestampTooOld(header: "Mux-Signature", tolerance: .seconds(60)))
        #expect(
            Self.failure(source, Self.request(own)) == .missingHeader("Mux-Signature"))
        #expect(source.verification.scheme.json["header"] == "Mux-Signature")
        #expect(source.verification.scheme.placeOfSecret == nil)
        #expect(try Self.source().verification.scheme.placeOfSecret?.hasPrefix("Stripe") == true)
    }

    @Test func `the trial script writes the header as a sender does`() throws {
        let guide = SenderGuide(to: try Self.source(), at: "http://relay/changes/1/c/development/s")
        let lines = try #require(guide.trial).split(separator: "\n").map(String.init)
        #expect(lines.contains("timestamp=$(date +%s)"), "\(lines)")
        let header = #"  -H "Stripe-Signature: t=$timestamp,v1=$signature" \"#
        #expect(lines.contains(header), "\(lines)")
        #expect(lines.contains { $0.hasPrefix(#"signature=$(printf %s "$timestamp.$body" |"#) })
    }
}
