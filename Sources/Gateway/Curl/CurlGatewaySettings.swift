package import RelayModel

/// The address of a gateway: an `https` URL without a path.
package struct GatewayEndpoint: Sendable, Hashable, CustomStringConvertible {
    /// The URL, without a slash at its end.
    package let url: String

    /// Parses `https://host` or `https://host:port`.
    ///
    /// Returns `nil` for anything else.
    ///
    /// Plain `http` is not allowed, because a provider token must not cross a network unencrypted.
    package init?(_ text: String) {
        var rest = text[...]
        guard rest.hasPrefix("https://") else { return nil }
        rest = rest.dropFirst("https://".count)
        if rest.last == "/" { rest = rest.dropLast() }
        let isAllowed = rest.utf8.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && !"/?#@\\\"".utf8.contains($0)
        }
        guard !rest.isEmpty, isAllowed, rest.utf8.count <= Limits.maximumNameBytes else {
            return nil
        }
        url = "https://" + rest
    }

    private init(known url: String) {
        self.url = url
    }

    /// Returns the endpoint of APNs for `environment`.
    ///
    /// 2197 is its port for networks that filter 443.
    package static func apns(
        _ environment: GatewayEnvironment, port: APNsPort = .https
    ) -> GatewayEndpoint {
        let host =
            switch environment {
            case .development: "api.sandbox.push.apple.com"
            case .production: "api.push.apple.com"
            }
        return GatewayEndpoint(known: "https://\(host):\(port.rawValue)")
    }

    /// The ports of APNs.
    package enum APNsPort: Int, Sendable, Hashable, CaseIterable {
        /// The usual port of HTTPS.
        case https = 443
        /// The port for networks that filter 443.
        case alternative = 2197
    }

    /// The URL.
    package var description: String { url }
}

/// The settings of ``CurlPushGateway``: where the gateway is, and how much it is asked.
package struct CurlGatewaySettings: Sendable {
    /// The endpoint for devices of the development environment.
    package var development = GatewayEndpoint.apns(.development)
    /// The endpoint for devices of the production environment.
    package var production = GatewayEndpoint.apns(.production)
    /// A file of PEM certificates that replaces the system's trusted ones.
    package var caFile: String?
    /// The URL of a proxy, which may contain a password.
    ///
    /// Without it no proxy is used, whatever the process's environment variables say.
    package var proxy: ConcealedText?
    /// The maximum number of connections for one credential and environment, 1 or more.
    package var connectionsPerCredential = 4
    /// The maximum number of requests that are open at once on one connection, 1 to 1000.
    ///
    /// APNs allows 1000. One connection is filled before another one is opened. So a gateway that
    /// is 50 ms away needs a second one beyond 10,000 pushes a second.
    package var streamsPerConnection = 500
    /// The maximum number of requests that wait for one credential and environment.
    ///
    /// Further ones come back as not sent.
    package var maximumWaiting = 4 * Limits.maximumDeliveriesInFlight
    /// The longest time for name resolution, TCP and TLS together.
    package var connectTimeout = Duration.seconds(10)
    /// The longest time for one request, from its hand-over to a connection to the answer.
    ///
    /// A gateway that takes half a minute is slow, but not dead (``SilenceTolerance``).
    package var requestTimeout = Duration.seconds(60)
    /// The time without any answer, while requests are open, after which a connection takes no new
    /// requests.
    ///
    /// It is then given up unless the gateway is known to be slow (``SilenceTolerance``).
    ///
    /// It is below the 20 s within which a half-open connection must be detected.
    package var watchdog = Duration.seconds(15)
    /// The age at which a connection is replaced.
    package var maximumConnectionAge = Duration.seconds(12 * 3600)
    /// The time after which an unused connection is closed.
    ///
    /// The last one of its pool is closed after ten times as long.
    package var idleTimeout = Duration.seconds(360)

    package init() {}

    /// Returns the endpoint for devices of `environment`.
    package func endpoint(for environment: GatewayEnvironment) -> GatewayEndpoint {
        switch environment {
        case .development: development
        case .production: production
        }
    }
}

extension CurlGatewaySettings {
    /// Checks the ranges that the documentation of the settings states.
    func validate() throws(GatewaySetupError) {
        guard (1...64).contains(connectionsPerCredential) else {
            throw .badSetting(
                "connectionsPerCredential must be 1 to 64, not \(connectionsPerCredential)")
        }
        guard (1...1000).contains(streamsPerConnection) else {
            throw .badSetting(
                "streamsPerConnection must be 1 to 1000, not \(streamsPerConnection)")
        }
        guard maximumWaiting > 0 else {
            throw .badSetting("maximumWaiting must be positive, not \(maximumWaiting)")
        }
        let times = [
            ("connectTimeout", connectTimeout), ("requestTimeout", requestTimeout),
            ("watchdog", watchdog), ("maximumConnectionAge", maximumConnectionAge),
            ("idleTimeout", idleTimeout),
        ]
        for (name, time) in times where time < .milliseconds(1) || time > .seconds(7 * 86_400) {
            throw .badSetting("\(name) must be 1 ms to 7 days, not \(time)")
        }
    }
}
