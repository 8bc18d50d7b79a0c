import RelayModel

/// How a source proves that a webhook is its own.
package struct SourceVerification: Sendable, Hashable {
    /// The verification scheme.
    package var scheme: VerificationScheme
    /// The accepted secrets: two while one replaces the other, and none for the scheme `none`.
    package var secrets: [SourceSecret]

    /// Combines a scheme and its secrets.
    package init(_ scheme: VerificationScheme, secrets: [SourceSecret] = []) {
        self.scheme = scheme
        self.secrets = secrets
    }

    /// The maximum number of secrets that are accepted at once.
    package static let maximumSecrets = 2
}

/// The schemes by which webhooks are verified.
package enum VerificationScheme: Sendable, Hashable {
    /// Everything is accepted, for sources that only the relay's own network can reach.
    case none
    /// Standard Webhooks 1.0: HMAC-SHA256 (`v1`) or ed25519 (`v1a`) over ID, timestamp and body.
    case standardWebhooks(tolerance: Duration)
    /// A static secret in a header.
    case header(String)
    /// An opaque token in `Authorization: Bearer`.
    case bearer
    /// The whole body is a JSON Web Token, signed with HS256 (Minapp).
    case tokenBody
    /// Time and signatures of time and body in one header, as Stripe sends them.
    case combined(CombinedSignature)
    /// A signature over parts of the request, put together as the recipe says.
    case signature(SignatureRecipe)
}

extension VerificationScheme {
    /// The headers that a signature covers, in lower case.
    ///
    /// It is `nil` if the request shows the secret itself: an attacker who copied a request could
    /// then write any headers anyway.
    var coveredHeaders: Set<String>? {
        switch self {
        case .none, .header, .bearer: return nil
        case .combined: return []
        case .standardWebhooks, .tokenBody:
            return [
                StandardWebhooks.idHeader, StandardWebhooks.timestampHeader,
                StandardWebhooks.svixIDHeader,
            ]
        case .signature(let recipe):
            return Set(
                recipe.parts.compactMap { part in
                    if case .header(let name) = part { name.lowercased() } else { nil }
                })
        }
    }

    /// Returns the index of the secret that fits `request`.
    func fittingSecret(
        _ request: WebhookRequest, among secrets: [SourceSecret]
    ) throws(VerificationError) -> Int {
        switch self {
        case .none:
            return 0
        case .standardWebhooks(let tolerance):
            let signed = try StandardWebhooks.signed(request, tolerance: tolerance)
            return try StandardWebhooks.fittingSecret(signed, among: secrets)
        case .header(let name):
            let value = try request.headers.required(name)
            return try Self.index(of: value, among: secrets, header: name)
        case .bearer:
            let value = try request.headers.required("Authorization")
            guard value.lowercased().hasPrefix("bearer ") else {
                throw .malformedHeader("Authorization", rule: "\"Bearer\", a space and the token")
            }
            let token = String(value.dropFirst("bearer ".count))
            return try Self.index(of: token, among: secrets, header: "Authorization")
        case .tokenBody:
            return try SignedToken(request.body).fittingSecret(among: secrets)
        case .combined(let signature):
            return try signature.fittingSecret(request, among: secrets)
        case .signature(let recipe):
            return try recipe.fittingSecret(request, among: secrets)
        }
    }

    /// Compares with every secret, so that the time does not reveal which one matched.
    private static func index(
        of value: String, among secrets: [SourceSecret], header: String
    ) throws(VerificationError) -> Int {
        var found: Int?
        for (index, secret) in secrets.enumerated()
        where ConstantTime.equal(secret.value, value) && found == nil {
            found = index
        }
        guard let found else { throw .secretMismatch(header: header) }
        return found
    }
}

extension WebhookHeaders {
    /// Returns the value of a required header.
    func required(_ name: String) throws(VerificationError) -> String {
        guard let value = self[name], !value.isEmpty else { throw .missingHeader(name) }
        return value
    }

    /// Checks that the header `name` holds a whole number of seconds since 1970 close to `now`, and
    /// returns its text.
    func checkTimestamp(
        _ name: String, now: Timestamp, tolerance: Duration
    ) throws(VerificationError) -> String {
        let text = try required(name)
        guard try Self.isTimestamp(text, of: name, now: now, tolerance: tolerance) else {
            throw .malformedHeader(name, rule: "whole seconds since 1970")
        }
        return text
    }

    /// Whether a text is a whole number of seconds since 1970.
    ///
    /// - Throws: ``VerificationError`` if it is one that is not near `now`.
    static func isTimestamp(
        _ text: String, of header: String, now: Timestamp, tolerance: Duration
    ) throws(VerificationError) -> Bool {
        guard text.utf8.count <= 12, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
            let seconds = Int64(text)
        else { return false }
        let age = now.duration(since: Timestamp(seconds: seconds))
        guard age <= tolerance else { throw .timestampTooOld(header: header, tolerance: tolerance) }
        guard age >= .zero - tolerance else {
            throw .timestampTooNew(header: header, tolerance: tolerance)
        }
        return true
    }
}
