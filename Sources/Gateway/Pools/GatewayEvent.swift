package import RelayModel

/// Something in the life of the gateway's connections that a log or a metric wants to know.
package enum GatewayEvent: Sendable, Hashable {
    /// A connection stands, and its first request is about to be written.
    case connected(GatewayPoolName, connection: UInt64)
    /// A connection takes nothing new; `answered` requests were answered on it.
    case retired(
        GatewayPoolName, connection: UInt64, cause: RetirementCause, age: Duration,
        answered: UInt64)
    /// A connection could not be opened, or the credential was refused; the next attempt is made
    /// no sooner than after `pause`.
    case backingOff(GatewayPoolName, cause: String, pause: Duration)
    /// A provider token was minted.
    case mintedProviderToken(ProviderTokenRecord.Key)
    /// A provider token was taken over from before a restart.
    case reusedProviderToken(ProviderTokenRecord.Key, age: Duration)
    /// The gateway calls a token expired, also on a fresh connection, that is only `age` old by
    /// this machine's clock.
    case clockIsWrong(ProviderTokenRecord.Key, age: Duration)
    /// The gateway's limit of streams was met: the requests that may be open on a connection now.
    case widthChanged(GatewayPoolName, width: Int)
    /// The gateway was seen to end connections after a number of requests: for a while they are
    /// replaced after so many, before it does.
    case allowanceChanged(GatewayPoolName, requests: Int)
}

/// Names a pool of connections for logs: the endpoint and who connects, without any secret.
package struct GatewayPoolName: Sendable, Hashable, CustomStringConvertible {
    /// Which of the gateway's environments.
    package let environment: GatewayEnvironment
    /// The endpoint's URL.
    package let endpoint: GatewayEndpoint
    /// Team and key, or "certificate".
    package let credential: String

    /// The parts in a row.
    package var description: String {
        "\(endpoint) \(environment.rawValue) \(credential)"
    }
}

/// What the gateway's thread is doing, for metrics.
package struct GatewayGauge: Sendable, Hashable {
    /// Requests that wait for a place on a connection.
    package var waiting = 0
    /// Requests that are open.
    package var open = 0
    /// Connections that are not closed.
    package var connections = 0

    /// Creates the gauge of a gateway that does nothing.
    package init() {}
}
