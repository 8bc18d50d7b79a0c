package import RelayModel

/// An event in the life of the gateway's connections, for logs and metrics.
package enum GatewayEvent: Sendable, Hashable {
    /// A connection is established, and its first request is about to be written.
    case connected(GatewayPoolName, connection: UInt64)
    /// A connection takes no new requests.
    ///
    /// `answered` requests were answered on it.
    case retired(
        GatewayPoolName, connection: UInt64, cause: RetirementCause, age: Duration,
        answered: UInt64)
    /// A connection could not be opened, or the gateway refused the credential or a container's
    /// request.
    ///
    /// The next attempt is made after `pause` at the earliest.
    case backingOff(GatewayPoolName, cause: String, pause: Duration)
    /// A provider token was minted.
    case mintedProviderToken(ProviderTokenRecord.Key)
    /// A provider token from before a restart is used again.
    case reusedProviderToken(ProviderTokenRecord.Key, age: Duration)
    /// The gateway refuses a token as expired, also on a fresh connection, although it is only
    /// `age` old by this machine's clock.
    case clockIsWrong(ProviderTokenRecord.Key, age: Duration)
    /// The gateway's limit of streams was met.
    ///
    /// `width` requests may now be open on a connection.
    case widthChanged(GatewayPoolName, width: Int)
    /// The gateway was seen to end connections after a number of requests.
    ///
    /// For a while, connections are replaced after `requests` requests, before the gateway ends
    /// them.
    case allowanceChanged(GatewayPoolName, requests: Int)
}

/// The name of a pool of connections for logs: the endpoint and the credential, without any secret.
package struct GatewayPoolName: Sendable, Hashable, CustomStringConvertible {
    /// The gateway environment.
    package let environment: GatewayEnvironment
    /// The endpoint's URL.
    package let endpoint: GatewayEndpoint
    /// The team and the key, or "certificate".
    package let credential: String

    /// The parts in one line.
    package var description: String {
        "\(endpoint) \(environment.rawValue) \(credential)"
    }
}

/// The load of the gateway's thread, for metrics.
package struct GatewayGauge: Sendable, Hashable {
    /// The number of requests that wait for a place on a connection.
    package var waiting = 0
    /// The number of requests that are open.
    package var open = 0
    /// The number of connections that are not closed.
    package var connections = 0

    /// Creates the gauge of an idle gateway.
    package init() {}
}
