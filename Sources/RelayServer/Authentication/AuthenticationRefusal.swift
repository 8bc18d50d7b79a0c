import ChangeSources
package import RelayModel

/// The reason why a request is not admitted; it names the part that failed, and never a secret.
package enum AuthenticationRefusal: AnsweredError, Sendable, Hashable {
    /// There are no credentials.
    case noCredentials
    /// There are credentials of two kinds that must not be combined.
    case mixedCredentials
    /// The container has no such API token.
    case unknownAPIToken
    /// The API token or access key was revoked.
    case revokedKey(label: String)
    /// A user is needed, but the request identifies none.
    case userRequired(redirectURL: String)
    /// The user token has expired, or its session has ended.
    case userTokenExpired(redirectURL: String)
    /// The user token is refused.
    case userToken(UserTokenRefusal)
    /// The container has no settings with which to verify user tokens.
    case noUserTokenSettings
    /// The server-to-server signature is refused.
    case signature(SignatureRefusal)
    /// The container has no such access key.
    case unknownBearerKey
    /// `X-Belfry-User` is missing although a user is needed, or its value is not a valid name.
    case badUserHeader(String)
    /// The credential is valid, but does not allow this.
    case notAllowed(String)
    /// The administrative token is wrong or missing.
    case adminToken(String)
    /// The session of the console has ended.
    case adminSession(String)

    /// Returns whether `error` refuses wrong credentials; a request to sign in does not count.
    static func isBehind(_ error: any Error) -> Bool {
        switch (error as? ExplainedRefusal)?.refusal ?? error as? AuthenticationRefusal {
        case .userRequired, .userTokenExpired, .notAllowed, .adminSession: false
        case nil: error is VerificationError
        default: true
        }
    }

    /// The answer: 401 for wrong credentials, 421 if signing in would help, 403 for a valid
    /// credential that lacks permission.
    package var apiError: APIError {
        switch self {
        case .noCredentials:
            failed(
                "no credentials: send ckAPIToken (and ckWebAuthToken for a user), the "
                    + "X-Apple-CloudKit-Request-* signature, or Authorization: Bearer")
        case .mixedCredentials:
            failed(
                "the request has an API token and a server-to-server signature: send only one of "
                    + "them")
        case .unknownAPIToken: failed("ckAPIToken: this container has no such API token")
        case .revokedKey(let label): failed("the key \"\(label)\" was revoked")
        case .userRequired(let url):
            required("request needs authorization: ckWebAuthToken is missing", url)
        case .userTokenExpired(let url):
            required("request needs authorization: the user token has expired", url)
        case .userToken(let refusal): failed("user token: \(refusal.reason)")
        case .noUserTokenSettings:
            failed("user token: this container has no settings to verify user tokens (userTokens)")
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

/// A refusal of credentials whose answer says more than usual.
struct ExplainedRefusal: AnsweredError, Sendable {
    let refusal: AuthenticationRefusal
    let apiError: APIError
}
