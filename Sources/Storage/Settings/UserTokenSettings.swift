/// How an application's user tokens (JWT) are verified.
package struct UserTokenSettings: Sendable, Hashable, CustomStringConvertible {
    /// The shared secret of HS256 tokens; `nil` refuses such tokens.
    package var sharedSecret: String?
    /// A JSON Web Key Set with the public keys of RS256, ES256 and EdDSA tokens.
    package var keySet: String?
    /// The value that `iss` must have; `nil` accepts any.
    package var issuer: String?
    /// The value that `aud` must have; `nil` accepts any.
    package var audience: String?
    /// The claim that names the user.
    package var userClaim: String

    /// Creates settings that read the user from `sub`.
    package init(
        sharedSecret: String? = nil, keySet: String? = nil, issuer: String? = nil,
        audience: String? = nil, userClaim: String = "sub"
    ) {
        self.sharedSecret = sharedSecret
        self.keySet = keySet
        self.issuer = issuer
        self.audience = audience
        self.userClaim = userClaim
    }

    /// The settings without the shared secret.
    package var description: String {
        "\(sharedSecret == nil ? "" : "HS256 ")\(keySet == nil ? "" : "JWKS ")claim \(userClaim)"
    }
}
