package import RelayModel

/// The settings of a container in one environment.
///
/// Settings can be large, and every call passes them on. A call that waits would hold a dozen
/// copies, so the value is a single reference.
package struct ContainerSettings: Sendable, Hashable {
    private struct Values: Sendable, Hashable {
        var key: ContainerKey
        var topics: [String]
        var credential: ProviderCredential?
        var certificate: ProviderCertificate?
        var userTokens: UserTokenSettings?
        // Pushes are kept for 30 days unless the container sets another time.
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
    /// The topics that the container's devices may name (APNs: bundle IDs).
    ///
    /// The first is the default.
    package var topics: [String] {
        get { shared.values.topics }
        set { shared = shared.with(\.topics, newValue) }
    }
    /// The signing key for the push gateway.
    ///
    /// Without it and ``certificate``, nothing can be sent.
    package var credential: ProviderCredential? {
        get { shared.values.credential }
        set { shared = shared.with(\.credential, newValue) }
    }
    /// The client certificate for the push gateway, used instead of a signing key.
    package var certificate: ProviderCertificate? {
        get { shared.values.certificate }
        set { shared = shared.with(\.certificate, newValue) }
    }
    /// How the application's user tokens are verified; `nil` means that no user can sign in.
    package var userTokens: UserTokenSettings? {
        get { shared.values.userTokens }
        set { shared = shared.with(\.userTokens, newValue) }
    }
    /// How long the gateway keeps a push, in seconds, unless the subscription says otherwise.
    package var expirationSeconds: Int64 {
        get { shared.values.expirationSeconds }
        set { shared = shared.with(\.expirationSeconds, newValue) }
    }
    /// Whether notifications are kept in the users' inboxes.
    package var keepsInbox: Bool {
        get { shared.values.keepsInbox }
        set { shared = shared.with(\.keepsInbox, newValue) }
    }
    /// How long users' session tokens are valid; `nil` means that none are issued.
    package var sessions: SessionSettings? {
        get { shared.values.sessions }
        set { shared = shared.with(\.sessions, newValue) }
    }
    /// The cost bounds of conditions that differ from the configuration.
    package var costs: CostBounds {
        get { shared.values.costs }
        set { shared = shared.with(\.costs, newValue) }
    }
    /// The quotas that differ from the configuration.
    package var quotas: Quotas {
        get { shared.values.quotas }
        set { shared = shared.with(\.quotas, newValue) }
    }
    /// The request rates of keys and users that differ from the configuration.
    package var rates: RequestRates {
        get { shared.values.rates }
        set { shared = shared.with(\.rates, newValue) }
    }

    /// Creates settings.
    ///
    /// Pushes are kept for 30 days unless set otherwise.
    package init(key: ContainerKey, topics: [String]) {
        shared = Shared(Values(key: key, topics: topics))
    }
}

/// How long users' session tokens are valid.
///
/// Apple documents 30 minutes, or two weeks for users who stay signed in. In measurements its
/// tokens work for about a day.
package struct SessionSettings: Sendable, Hashable {
    /// The validity of one token in minutes.
    package var minutes: Int
    /// The days after which a session ends, however often its tokens are renewed.
    package var days: Int

    /// Creates settings.
    ///
    /// By default a token is valid for a day and a session for two weeks.
    package init(minutes: Int = 1440, days: Int = 14) {
        self.minutes = minutes
        self.days = days
    }
}
