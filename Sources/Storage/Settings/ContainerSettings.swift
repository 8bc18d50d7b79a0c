package import RelayModel

/// The settings of a container in one environment.
package struct ContainerSettings: Sendable, Hashable {
    /// The container and environment.
    package var key: ContainerKey
    /// The topics that its devices may name (APNs: bundle IDs); the first is the default.
    package var topics: [String]
    /// The signing key for the push gateway; without it and ``certificate`` nothing can be sent.
    package var credential: ProviderCredential?
    /// The client certificate for the push gateway, instead of a signing key.
    package var certificate: ProviderCertificate?
    /// How the application's user tokens are verified; `nil` means that no user can sign in.
    package var userTokens: UserTokenSettings?
    /// How long the gateway keeps a push, in seconds, where the subscription does not say.
    package var expirationSeconds: Int64
    /// Whether notifications are kept in their users' inboxes.
    package var keepsInbox = false
    /// How long users' session tokens count; `nil` hands out none.
    package var sessions: SessionSettings? = SessionSettings()
    /// What conditions may cost its changes, where that is not as the configuration says.
    package var costs = CostBounds()

    /// How much it may have, where that is not as the configuration says.
    package var quotas = Quotas()
    /// How often its keys and users may come, where that is not as the configuration says.
    package var rates = RequestRates()

    /// Creates settings; pushes are kept for 30 days unless said otherwise.
    package init(key: ContainerKey, topics: [String]) {
        self.key = key
        self.topics = topics
        expirationSeconds = 30 * 86_400
    }
}

/// How long session tokens of users count.
///
/// Apple says 30 minutes, or two weeks for those who stay signed in; measured, its tokens keep
/// working for about a day.
package struct SessionSettings: Sendable, Hashable {
    /// The minutes for which one token is good.
    package var minutes: Int
    /// The days after which a session ends, however often its tokens are renewed.
    package var days: Int

    /// Creates settings: a token is good for a day, a session for two weeks.
    package init(minutes: Int = 1440, days: Int = 14) {
        self.minutes = minutes
        self.days = days
    }
}
