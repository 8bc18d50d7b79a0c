import ChangeSources
package import RelayModel

/// Why a request is not let in; it names the part that failed and never a secret.
package enum AuthenticationRefusal: AnsweredError, Sendable, Hashable {
    /// There is no credential at all.
    case noCredentials
    /// Credentials of two kinds that do not go together.
    case mixedCredentials
    /// The container has no such API token.
    case unknownAPIToken
    /// The API token or access key was revoked.
    case revokedKey(label: String)
    /// A user is needed, and the request names none.
    case userRequired(redirectURL: String)
    /// The user token has ended.
    case userTokenExpired(redirectURL: String)
    /// The user token is refused.
    case userToken(UserTokenRefusal)
    /// The container does not say how user tokens are verified.
    case noUserTokenSettings
    /// The server-to-server signature is refused.
    case signature(SignatureRefusal)
    /// The container has no such access key.
    case unknownBearerKey
    /// `X-Belfry-User` is missing where a user is needed, or no possible name.
    case badUserHeader(String)
    /// The credential is good, but not for this.
    case notAllowed(String)
    /// The administrative token is wrong or missing.
    case adminToken(String)
    /// The session of the console has ended.
    case adminSession(String)

    /// Whether `error` refuses credentials that are wrong; to be asked to sign in is no fault.
    static func isBehind(_ error: any Error) -> Bool {
        switch (error as? ExplainedRefusal)?.refusal ?? error as? AuthenticationRefusal {
        case .userRequired, .userTokenExpired, .notAllowed, .adminSession: false
        case nil: error is VerificationError
        default: true
        }
    }

    /// The answer: 401 for what is wrong, 421 where signing in would help, 403 for what is known
    /// and may not.
    package var apiError: APIError {
        switch self {
        case .noCredentials:
            failed(
                "no credentials: send ckAPIToken (and ckWebAuthToken for a user), the "
                    + "X-Apple-CloudKit-Request-* signature, or Authorization: Bearer")
        case .mixedCredentials:
            failed("an API token and a server-to-server signature: send one of the two")
        case .unknownAPIToken: failed("ckAPIToken: this container has no such API token")
        case .revokedKey(let label): failed("the key \"\(label)\" was revoked")
        case .userRequired(let url):
            required("request needs authorization: ckWebAuthToken is missing", url)
        case .userTokenExpired(let url):
            required("request needs authorization: the user token has expired", url)
        case .userToken(let refusal): failed("user token: \(refusal.reason)")
        case .noUserTokenSettings:
            failed("user token: this container has no settings to verify user tokens with")
        case .signature(let refusal): failed("server-to-server signature: \(refusal.reason)")
        case .unknownBearerKey: failed("Authorization: this container has no such access key")
        case .badUserHeader(let reason): APIError(.badRequest, "X-Belfry-User: \(reason)")
        case .notAllowed(let reason): APIError(.accessDenied, reason)
        case .adminToken(let reason): failed("admin token: \(reason)")
        case .adminSession(let reason): failed("session: \(reason)")
        }
    }

    private func failed(_ reason: String) -> APIError {
        APIError(.authenticationFailed, reason)
    }

    private func required(_ reason: String, _ redirectURL: String) -> APIError {
        APIError(
            .authenticationRequired, reason, details: ["redirectURL": .string(redirectURL)])
    }
}

/// Credentials that are refused, of which the answer says more than elsewhere.
struct ExplainedRefusal: AnsweredError, Sendable {
    let refusal: AuthenticationRefusal
    let apiError: APIError
}
