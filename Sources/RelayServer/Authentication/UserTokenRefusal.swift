/// The reason why a user token is refused.
package enum UserTokenRefusal: Error, Sendable, Hashable {
    /// It is too long to be examined.
    case tooLong(limit: Int)
    /// It is not three base64url parts with JSON in the first two.
    case malformed(String)
    /// Its algorithm is not one that the container's settings allow.
    case algorithm(found: String, allowed: [String])
    /// It has a `crit` header, which names extensions that are not supported here.
    case criticalHeader
    /// It names a key that the container's key set does not have.
    case unknownKey
    /// Its signature matches no key.
    case signature
    /// It has expired.
    case expired
    /// It is not valid yet.
    case notYetValid
    /// A claim is missing or has the wrong type.
    case claim(String, String)
    /// It comes from another issuer.
    case issuer
    /// It is for another audience.
    case audience
    /// The container's key set cannot be parsed.
    case keySet(String)

    /// The reason as a sentence for people.
    package var reason: String {
        switch self {
        case .tooLong(let limit): "longer than \(limit) bytes"
        case .malformed(let what): "not a JSON Web Token: \(what)"
        case .algorithm(let found, let allowed):
            allowed.isEmpty
                ? "the algorithm \"\(found)\" is refused: this container has no key to verify "
                    + "tokens"
                : "the algorithm \"\(found)\" is refused; allowed: "
                    + allowed.joined(separator: ", ")
        case .criticalHeader: "its header has \"crit\", which is not supported"
        case .unknownKey: "its \"kid\" names no key of this container's key set"
        case .signature: "the signature is not valid"
        case .expired: "it has expired"
        case .notYetValid: "it is not valid yet (nbf)"
        case .claim(let name, let what): "the claim \"\(name)\" \(what)"
        case .issuer: "wrong issuer (iss)"
        case .audience: "wrong audience (aud)"
        case .keySet(let what): "the container's key set cannot be read: \(what)"
        }
    }
}
