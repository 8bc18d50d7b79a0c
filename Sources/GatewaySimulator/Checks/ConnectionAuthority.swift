/// The rules for the provider tokens of one connection.
///
/// APNs ties a connection to its providers: which team, key and token it accepts depends on the
/// tokens that the connection has used before.
struct ConnectionAuthority {
    /// The parts of a gateway's configuration that the rules need.
    struct Rules: Sendable {
        /// The providers that the gateway trusts.
        var trust: ProviderTrust
        /// The gateway's environment.
        var environment: SimulatedEnvironment
        /// The maximum age of a token, in seconds.
        var maximumAge: Int64
        /// The minimum time between the issue of a new token and that of its predecessor, in
        /// seconds; 0 for no rule.
        var minimumUpdateInterval: Int64
        /// How far ahead the provider's clock may be, in seconds.
        var clockTolerance: Int64
        /// What an expired token does to its connection.
        var afterExpiredToken: ExpiredTokenPolicy
    }

    /// The holder of a provider token.
    struct Provider: Equatable {
        /// The key identifier.
        var keyID: String
        /// The team.
        var teamID: String
        /// The topics of the key; `nil` for all.
        var topics: Set<String>?
        /// When the token was issued, in seconds since 1970.
        var issuedAt: Int64
    }

    /// The maximum number of distinct tokens to remember.
    ///
    /// A sender uses one or two.
    private static let maximumTokens = 64

    private let rules: Rules
    private var known: [String: Provider] = [:]
    private var first: Provider?
    private var newestIssue: Int64?
    private var isWedged = false

    /// Creates the rules of a new connection.
    init(_ rules: Rules) {
        self.rules = rules
    }

    /// Judges the value of an `authorization` header at the time `now`, in seconds since 1970.
    ///
    /// The signature of each distinct token is verified once.
    mutating func judge(_ authorization: String?, now: Int64) -> Result<Provider, PushFault> {
        guard let token = Self.bearer(authorization) else {
            return .failure(
                PushFault(
                    403, "MissingProviderToken",
                    "the header 'authorization' must be 'bearer' and a provider token"))
        }
        if isWedged { return .failure(.expired("an earlier token of this connection expired")) }
        if let provider = known[token] { return judgeAge(of: provider, now: now) }
        return verify(token).flatMap { provider in
            judgeAge(of: provider, now: now).flatMap { admit($0, token: token) }
        }
    }

    private static func bearer(_ authorization: String?) -> String? {
        guard let authorization, authorization.hasPrefix("bearer ") else { return nil }
        let token = authorization.dropFirst("bearer ".count)
        return token.isEmpty ? nil : String(token)
    }

    private func verify(_ text: String) -> Result<Provider, PushFault> {
        guard let token = ProviderToken(text) else {
            return .failure(
                .invalid(
                    "it is not an ES256 JSON web token with 'kid', 'iss' and an integer 'iat'"))
        }
        guard case .keys(let keys) = rules.trust else {
            return .success(
                Provider(
                    keyID: token.keyID, teamID: token.teamID, topics: nil,
                    issuedAt: token.issuedAt))
        }
        guard let key = keys.first(where: { $0.keyID == token.keyID }) else {
            return .failure(.invalid("its 'kid' is not a key that this gateway knows"))
        }
        guard key.teamID == token.teamID else {
            return .failure(.invalid("its 'iss' is not the team of its key"))
        }
        guard token.isSigned(by: key.publicKey) else {
            return .failure(.invalid("its signature was not made by its key"))
        }
        if let environment = key.environment, environment != rules.environment {
            return .failure(
                PushFault(
                    403, "BadEnvironmentKeyIdInToken",
                    "the key is for \(environment), the gateway is \(rules.environment)"))
        }
        return .success(
            Provider(
                keyID: key.keyID, teamID: key.teamID, topics: key.topics,
                issuedAt: token.issuedAt))
    }

    private mutating func judgeAge(
        of provider: Provider, now: Int64
    ) -> Result<Provider, PushFault> {
        let (age, overflowed) = now.subtractingReportingOverflow(provider.issuedAt)
        if overflowed || age < -rules.clockTolerance {
            return .failure(.invalid("its 'iat' is in the future"))
        }
        guard age <= rules.maximumAge else {
            isWedged = rules.afterExpiredToken == .wedgesConnection
            return .failure(.expired("its 'iat' is \(age) s ago"))
        }
        return .success(provider)
    }

    /// Checks a verified token against the providers that the connection has already used.
    private mutating func admit(
        _ provider: Provider, token: String
    ) -> Result<Provider, PushFault> {
        if let first, first.teamID != provider.teamID {
            return .failure(.invalid("the connection belongs to another team"))
        }
        if let first, first.topics != provider.topics {
            return .failure(
                PushFault(
                    403, "UnrelatedKeyIdInToken",
                    "the connection belongs to a key with other topics"))
        }
        if let newestIssue, provider.issuedAt > newestIssue,
            provider.issuedAt - newestIssue < rules.minimumUpdateInterval
        {
            return .failure(
                PushFault(
                    429, "TooManyProviderTokenUpdates",
                    "the token before was issued only \(provider.issuedAt - newestIssue) s earlier"
                ))
        }
        if known.count >= Self.maximumTokens { known.removeAll() }
        known[token] = provider
        first = first ?? provider
        newestIssue = max(newestIssue ?? .min, provider.issuedAt)
        return .success(provider)
    }
}

extension PushFault {
    static func invalid(_ explanation: String) -> PushFault {
        PushFault(403, "InvalidProviderToken", "provider token: \(explanation)")
    }

    static func expired(_ explanation: String) -> PushFault {
        PushFault(403, "ExpiredProviderToken", "provider token: \(explanation)")
    }
}
