import Crypto
package import RelayModel
package import Storage

/// Verifies the tokens (JWT, RFC 7519) by which an application's identity provider names its users.
///
/// The container's settings decide the algorithm, and the token must agree. A shared secret
/// verifies only HS256, and a public key only the algorithm of its kind. So neither `alg: none` nor
/// a public key used as an HMAC secret is accepted (RFC 8725 §3.1).
package struct UserTokenVerifier: Sendable {
    private let settings: UserTokenSettings

    /// Creates a verifier with the keys of `settings`.
    package init(_ settings: UserTokenSettings) {
        self.settings = settings
    }

    /// Verifies `token` at the moment `now`.
    ///
    /// - Returns: The user that it names.
    /// - Throws: ``UserTokenRefusal`` that names the part that failed.
    package func user(of token: String, now: Timestamp) throws(UserTokenRefusal) -> UserID {
        try verify(token).user(at: now)
    }

    /// Verifies the signature of `token`, but not its claims.
    ///
    /// - Throws: ``UserTokenRefusal`` that names the part that failed.
    func verify(_ token: String) throws(UserTokenRefusal) -> VerifiedUserToken {
        let parts = try SplitToken(token)
        let keySet = try settings.keySet.map(JSONWebKeySet.inUse)
        let key = try verifyingKey(parts, keySet: keySet)
        return VerifiedUserToken(
            text: token, settings: settings, claims: parts.claims, key: key)
    }

    /// Returns the algorithms for which the settings have a key.
    private func allowedAlgorithms(_ keySet: JSONWebKeySet?) -> [String] {
        var names = Set((keySet?.keys ?? []).map(\.algorithm))
        if settings.sharedSecret != nil { names.insert("HS256") }
        return names.sorted()
    }

    /// Returns the identity of the key that signed the token.
    private func verifyingKey(
        _ token: SplitToken, keySet: JSONWebKeySet?
    ) throws(UserTokenRefusal) -> [UInt8] {
        let allowed = allowedAlgorithms(keySet)
        guard allowed.contains(token.algorithm) else {
            throw .algorithm(found: token.algorithm.shortened, allowed: allowed)
        }
        if token.algorithm == "HS256" {
            guard let secret = settings.sharedSecret,
                HMAC<SHA256>.isValidAuthenticationCode(
                    token.signature, authenticating: token.signedBytes,
                    using: SymmetricKey(data: Array(secret.utf8)))
            else { throw .signature }
            return UserTokenSettings.identity(ofSecret: secret)
        }
        var keys = (keySet?.keys ?? []).filter { $0.algorithm == token.algorithm }
        if let keyID = token.keyID {
            let named = keys.filter { $0.id == keyID }
            // A set with a single key without an ID also verifies tokens that name one.
            if named.isEmpty, keys.contains(where: { $0.id != nil }) { throw .unknownKey }
            if !named.isEmpty { keys = named }
        }
        guard let key = keys.first(where: { $0.verifies(token) }) else { throw .signature }
        return key.identity
    }
}

extension UserTokenSettings {
    /// The identities of all keys that verify tokens, including the shared secret.
    var keyIdentities: [[UInt8]] {
        (sharedSecret.map { [Self.identity(ofSecret: $0)] } ?? [])
            + (keySet.map(JSONWebKeySet.identities(of:)) ?? [])
    }

    /// Returns whether a token that is valid under the settings `former` may be invalid under
    /// these.
    func refuses(tokensOf former: UserTokenSettings) -> Bool {
        !Set(keyIdentities).isSuperset(of: former.keyIdentities)
            || issuer != nil && issuer != former.issuer
            || audience != nil && audience != former.audience
            || userClaim != former.userClaim
    }

    /// Returns the identity of a shared secret.
    static func identity(ofSecret secret: String) -> [UInt8] {
        Array("HS256".utf8) + [0] + Array(secret.utf8)
    }
}

/// A token whose signature is valid, and whose claims are not checked yet.
struct VerifiedUserToken: Sendable {
    private let text: String
    private let settings: UserTokenSettings
    private let claims: JSONObject
    /// The identity of the key that signed it.
    let key: [UInt8]

    init(text: String, settings: UserTokenSettings, claims: JSONObject, key: [UInt8]) {
        self.text = text
        self.settings = settings
        self.claims = claims
        self.key = key
    }

    /// Returns whether it is `token`, verified under these settings.
    func isOf(_ token: String, by settings: UserTokenSettings) -> Bool {
        text == token && self.settings == settings
    }

    /// Returns the user that the token names at the moment `now`.
    ///
    /// - Throws: ``UserTokenRefusal`` that names the claim that failed.
    func user(at now: Timestamp) throws(UserTokenRefusal) -> UserID {
        try checkTimes(claims, now: now)
        try checkIssuer(claims)
        try checkAudience(claims)
        return try user(claims)
    }

    private func checkTimes(_ claims: JSONObject, now: Timestamp) throws(UserTokenRefusal) {
        guard let end = try moment("exp", claims) else { throw .claim("exp", "is required") }
        guard now < end else { throw .expired }
        if let start = try moment("nbf", claims),
            now.advanced(by: Limits.userTokenLeeway) < start
        {
            throw .notYetValid
        }
    }

    private func checkIssuer(_ claims: JSONObject) throws(UserTokenRefusal) {
        guard let issuer = settings.issuer else { return }
        guard claims["iss"] == .string(issuer) else { throw .issuer }
    }

    private func checkAudience(_ claims: JSONObject) throws(UserTokenRefusal) {
        guard let audience = settings.audience else { return }
        switch claims["aud"] {
        case .string(audience): return
        case .array(let audiences) where audiences.contains(.string(audience)): return
        default: throw .audience
        }
    }

    private func user(_ claims: JSONObject) throws(UserTokenRefusal) -> UserID {
        let text: String
        switch claims[settings.userClaim] {
        case .string(let name)?: text = name
        case .integer(let number)?: text = String(number)
        case nil: throw .claim(settings.userClaim, "is required: it names the user")
        default: throw .claim(settings.userClaim, "must be a string or an integer")
        }
        guard let user = UserID(rawValue: text) else {
            throw .claim(settings.userClaim, "is not \(UserID.rule)")
        }
        return user
    }

    private func moment(
        _ name: String, _ claims: JSONObject
    ) throws(UserTokenRefusal) -> Timestamp? {
        guard let value = claims[name], value != .null else { return nil }
        guard let moment = value.double.flatMap(Timestamp.init(secondsSince1970:)) else {
            throw .claim(name, "must be a number of seconds")
        }
        return moment
    }
}

/// The parts of a token, before it is verified.
struct SplitToken {
    /// The header's `alg`.
    let algorithm: String
    /// The header's `kid`.
    let keyID: String?
    /// The payload.
    let claims: JSONObject
    /// The bytes that are signed.
    let signedBytes: [UInt8]
    /// The signature.
    let signature: [UInt8]

    init(_ token: String) throws(UserTokenRefusal) {
        guard token.utf8.count <= Limits.maximumUserTokenBytes else {
            throw .tooLong(limit: Limits.maximumUserTokenBytes)
        }
        guard let parts = CompactJWS(token) else { throw .malformed("it must have three parts") }
        let header = try Self.object(parts.header, name: "header")
        claims = try Self.object(parts.payload, name: "payload")
        guard let signature = Base64.decodeToken(parts.signature) else {
            throw .malformed("the signature is not base64url")
        }
        guard case .string(let algorithm)? = header["alg"] else {
            throw .malformed("the header has no alg")
        }
        guard header["crit"] == nil else { throw .criticalHeader }
        self.algorithm = algorithm
        if case .string(let keyID)? = header["kid"] { self.keyID = keyID } else { keyID = nil }
        self.signature = signature
        signedBytes = parts.signedBytes
    }

    private static func object(
        _ part: Substring, name: String
    ) throws(UserTokenRefusal) -> JSONObject {
        guard let bytes = Base64.decodeToken(part),
            let json = try? JSONValue(parsing: bytes), case .object(let object) = json
        else { throw .malformed("the \(name) is not a JSON object in base64url") }
        return object
    }
}
