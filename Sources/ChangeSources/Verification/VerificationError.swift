import RelayModel

/// The reason why a webhook is not accepted; the answer is 401.
///
/// It names the part that failed, but never contains a secret, a signature or a computed value.
package enum VerificationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A header that the scheme needs is absent or empty.
    case missingHeader(String)
    /// A header is malformed; `rule` says what is allowed.
    case malformedHeader(String, rule: String)
    /// The signed timestamp is older than the tolerance.
    case timestampTooOld(header: String, tolerance: Duration)
    /// The signed timestamp is further in the future than the tolerance.
    case timestampTooNew(header: String, tolerance: Duration)
    /// No signature fits any valid secret.
    case signatureMismatch(header: String)
    /// The static secret or bearer token is wrong.
    case secretMismatch(header: String)
    /// The body is not a signed token.
    case malformedToken
    /// The token names an algorithm other than the configured one.
    case tokenAlgorithm
    /// The token's signature fits no valid secret.
    case tokenMismatch
    /// Every secret of the source has expired.
    case noLiveSecret
    /// A header describes what happened, but the signature does not cover it.
    case unsignedHeader(String)
    /// A header describes what happened, but bytes could move between it and another part.
    case movableHeader(reason: String)

    /// What to check if the secret may be wrong.
    private static let secret =
        "check that the sender has the secret that belfry sources set or rotate showed last"

    /// Returns what to check about a signature in the header: the secret, if the sender makes it,
    /// and common mistakes about what is signed, or with which key.
    private static func checks(of header: String) -> String {
        switch header {
        case SignatureRecipe.airtable.header:
            "check that the source has the macSecretBase64 that Airtable returned when the webhook "
                + "was created (belfry sources rotate … --secret-file FILE), "
        case SignatureRecipe.appwrite(url: nil).header:
            "check that the source has the signature key of the webhook in Appwrite's console "
                + "(belfry sources rotate … --secret-file FILE), that the URL there is the one "
                + "that belfry sources show prints, or the \"url\" of its verification, "
        case CombinedSignature.usualHeader:
            "check that the source has the signing secret of this endpoint in Stripe's dashboard, "
                + "with its whsec_ (belfry sources rotate … --secret-file FILE), "
        case let name where name.hasPrefix("webhook-") || name.hasPrefix("svix-"):
            "\(secret), that the key is the part after whsec_, decoded from Base64, "
        default: "\(secret), "
        }
    }

    /// The error in one sentence.
    package var description: String {
        switch self {
        case .missingHeader(let name): "the header \(name) is missing"
        case .malformedHeader(let name, let rule): "the header \(name) must be \(rule)"
        case .timestampTooOld(let name, let tolerance):
            "the timestamp in \(name) is more than \(tolerance.components.seconds) seconds old: "
                + "check the sender's clock"
        case .timestampTooNew(let name, let tolerance):
            "the timestamp in \(name) is more than \(tolerance.components.seconds) seconds ahead: "
                + "check the sender's clock"
        case .signatureMismatch(let name):
            "no signature in \(name) matches the body and a valid secret of this source: "
                + "\(Self.checks(of: name))and that nothing rewrites the body on its way"
        case .secretMismatch(let name):
            "the header \(name) does not contain this source's secret: \(Self.secret)"
        case .malformedToken: "the body is not a JSON Web Token of three base64url parts"
        case .tokenAlgorithm: "the token's algorithm must be HS256"
        case .tokenMismatch:
            "the token's signature matches no valid secret of this source: \(Self.secret)"
        case .noLiveSecret:
            "every secret of this source has expired: belfry sources rotate makes a new one"
        case .unsignedHeader(let name):
            "the header \(name) describes the event, but the signature does not cover it: send the "
                + "event in structured mode, or add every ce- header to the signature's parts"
        case .movableHeader(let reason):
            "the signature does not show where a ce- header ends: \(reason); then save the source "
                + "again"
        }
    }
}

/// How a webhook was verified.
package struct VerificationOutcome: Sendable, Hashable {
    /// The index of the secret that fitted, from 0; `nil` for a source without secrets.
    package let secretIndex: Int?

    /// Creates the outcome with the index of the secret that fitted.
    package init(secretIndex: Int?) {
        self.secretIndex = secretIndex
    }
}
