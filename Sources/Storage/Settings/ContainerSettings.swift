package import RelayModel

/// The settings of a container in one environment.
///
/// They are as large as all of them together and are handed on with every call, which would keep
/// them a dozen times over while it waits: so what is handed on is one reference.
package struct ContainerSettings: Sendable, Hashable {
    private struct Values: Sendable, Hashable {
        var key: ContainerKey
        var topics: [String]
        var credential: ProviderCredential?
        var certificate: ProviderCertificate?
        var userTokens: UserTokenSettings?
        // Pushes are kept for 30 days unless said otherwise.
        var expirationSeconds: Int64 = 30 * 86_400
        var keepsInbox = false
        var sessions: SessionSettings? = SessionSettings()
        var costs = CostBounds()
        var quotas = Quotas()
        var rates = RequestRates()
    }

    private final class Shared: Sendable, Hashable {
        let values: Values

        init(_ values: Values) {
            self.values = values
        }

        func with<Value>(_ path: WritableKeyPath<Values, Value>, _ value: Value) -> Shared {
            var values = values
            values[keyPath: path] = value
            return Shared(values)
        }

        static func == (one: Shared, other: Shared) -> Bool {
            one === other || one.values == other.values
        }

        func hash(into hasher: inout Hasher) { hasher.combine(values) }
    }

    private var shared: Shared

    /// The container and environment.
    package var key: ContainerKey {
        get { shared.values.key }
        set { shared = shared.with(\.key, newValue) }
    }
    /// The topics that its devices may name (APNs: bundle IDs); the first is the default.
    package var topics: [String] {
        get { shared.values.topics }
        set { shared = shared.with(\.topics, newValue) }
    }
    /// The signing key for the push gateway; without it and ``certificate`` nothing can be sent.
    package var credential: ProviderCredential? {
        get { shared.values.credential }
        set { shared = shared.with(\.credential, newValue) }
    }
    /// The client certificate for the push gateway, instead of a signing key.
    package var certificate: ProviderCertificate? {
        get { shared.values.certificate }
        set { shared = shared.with(\.certificate, newValue) }
    }
    /// How the application's user tokens are verified; `nil` means that no user can sign in.
    package var userTokens: UserTokenSettings? {
        get { shared.values.userTokens }
        set { shared = shared.with(\.userTokens, newValue) }
    }
    /// How long the gateway keeps a push, in seconds, where the subscription does not say.
    package var expirationSeconds: Int64 {
        get { shared.values.expirationSeconds }
        set { shared = shared.with(\.expirationSeconds, newValue) }
    }
    /// Whether notifications are kept in their users' inboxes.
    package var keepsInbox: Bool {
        get { shared.values.keepsInbox }
        set { shared = shared.with(\.keepsInbox, newValue) }
    }
    /// How long users' session tokens count; `nil` hands out none.
    package var sessions: SessionSettings? {
        get { shared.values.sessions }
        set { shared = shared.with(\.sessions, newValue) }
    }
    /// What conditions may cost its changes, where that is not as the configuration says.
    package var costs: CostBounds {
        get { shared.values.costs }
        set { shared = shared.with(\.costs, newValue) }
    }
    /// How much it may have, where that is not as the configuration says.
    package var quotas: Quotas {
        get { shared.values.quotas }
        set { shared = shared.with(\.quotas, newValue) }
    }
    /// How often its keys and users may come, where that is not as the configuration says.
    package var rates: RequestRates {
        get { shared.values.rates }
        set { shared = shared.with(\.rates, newValue) }
    }

    /// Creates settings; pushes are kept for 30 days unless said otherwise.
    package init(key: ContainerKey, topics: [String]) {
        shared = Shared(Values(key: key, topics: topics))
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
