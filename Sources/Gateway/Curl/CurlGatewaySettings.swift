package import RelayModel

/// Where a gateway is reached: an `https` URL without a path.
package struct GatewayEndpoint: Sendable, Hashable, CustomStringConvertible {
    /// The URL, without a slash at its end.
    package let url: String

    /// Reads `https://host` or `https://host:port`, or returns `nil` for anything else.
    ///
    /// Plain `http` is not spoken: a provider token must not cross a network in the clear.
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

    /// APNs for `environment`; 2197 is its port for networks that filter 443.
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
        /// As for any HTTPS.
        case https = 443
        /// For networks that filter the other one.
        case alternative = 2197
    }

    /// The URL.
    package var description: String { url }
}

/// How ``CurlPushGateway`` reaches the gateway, and how much it asks of it.
package struct CurlGatewaySettings: Sendable {
    /// Where devices of the development environment are reached.
    package var development = GatewayEndpoint.apns(.development)
    /// Where devices of the production environment are reached.
    package var production = GatewayEndpoint.apns(.production)
    /// A file of PEM certificates that replaces the system's trusted ones.
    package var caFile: String?
    /// A proxy's URL, which may hold a password.
    ///
    /// Without it there is none, whatever the process's variables say.
    package var proxy: ConcealedText?
    /// The most connections for one credential and environment, 1 or more.
    package var connectionsPerCredential = 4
    /// The most requests open at once on one connection, 1 to 1000.
    ///
    /// APNs allows 1000. One connection is filled before another is opened, so that a gateway 50 ms
    /// away needs a second one beyond 10,000 pushes a second.
    package var streamsPerConnection = 500
    /// The most requests that wait for one credential and environment; more come back as not sent.
    package var maximumWaiting = 4 * Limits.maximumDeliveriesInFlight
    /// For name, TCP and TLS together.
    package var connectTimeout = Duration.seconds(10)
    /// For one request, from its hand-over to a connection to the answer.
    ///
    /// A gateway that takes half a minute is slow, not dead (``SilenceTolerance``).
    package var requestTimeout = Duration.seconds(60)
    /// A connection that answers nothing for so long while requests are open takes no new ones, and
    /// is given up unless the gateway is known to be slow (``SilenceTolerance``).
    ///
    /// It is below the 20 s within which a half-open connection must be found.
    package var watchdog = Duration.seconds(15)
    /// The age at which a connection is replaced.
    package var maximumConnectionAge = Duration.seconds(12 * 3600)
    /// After that a connection that nothing needed is closed, the last one of its pool ten times
    /// later.
    package var idleTimeout = Duration.seconds(360)

    package init() {}

    /// Where `environment`'s devices are reached.
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
