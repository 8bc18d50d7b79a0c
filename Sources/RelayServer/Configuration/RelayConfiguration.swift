import Delivery
import Gateway
package import Logging
package import RelayModel
package import Storage
import StoragePostgreSQL

/// The settings of a relay, which are decoded once, validated once, and given to the rooms in
/// parts.
package struct RelayConfiguration: Sendable, CustomStringConvertible {
    /// The address and port of a listener.
    package struct Listener: Sendable, Hashable {
        /// The address.
        package var host: String
        /// The port; 0 takes a free one.
        package var port: Int

        /// The host and port for a URL; the loopback address if the relay listens on all addresses.
        var authority: String {
            let reached =
                switch host {
                case "0.0.0.0": "127.0.0.1"
                case "::": "::1"
                default: host
                }
            return (reached.contains(":") ? "[\(reached)]" : reached) + ":\(port)"
        }

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    /// The files for TLS.
    package struct TLSFiles: Sendable, Hashable {
        /// The certificate chain in PEM form.
        package var certificate: String
        /// The private key in PEM form.
        package var privateKey: String
    }

    /// How the push gateway is reached.
    package struct GatewayAccess: Sendable, Hashable {
        /// The URL for both environments; it replaces ``development`` and ``production``.
        var both: String?
        /// The URL of the development gateway.
        var development = "https://api.sandbox.push.apple.com"
        /// The URL of the production gateway.
        var production = "https://api.push.apple.com"
        /// The file of certificate authorities in PEM form that replaces the system's.
        package var caFile: String?
        /// The maximum number of connections to each gateway.
        package var connections = CurlGatewaySettings().connectionsPerCredential
        /// The URL of the proxy to the gateway, which may contain a password.
        package var proxy: String?

        /// Returns the URL of the gateway for tokens of `environment`, without a slash at the end.
        package func url(of environment: GatewayEnvironment) -> String {
            let url =
                switch environment {
                case .development: development
                case .production: production
                }
            return RelayConfiguration.withoutSlash(both ?? url)
        }
    }

    /// The limits of sending deliveries.
    package struct DeliveryBounds: Sendable, Hashable {
        /// The maximum number of deliveries that are sent and not yet settled.
        package var inFlight = 4096
        /// The maximum number of deliveries of ranges that are sent and not yet settled.
        package var rangeInFlight = DeliverySettings().rangeWindow
        /// The maximum number of retries that are sent and not yet settled.
        package var retryInFlight = DeliverySettings().retryWindow
        /// The number of answered attempts of one delivery after which it becomes a dead letter.
        package var maximumAttempts = RetryPolicy().maximumAttempts
        /// The maximum number of background pushes to one device in an hour; 0 means no limit.
        package var silentPushesPerHour = DeliverySettings().silentPushesPerHour
    }

    /// The settings for clients that fetch their notifications.
    package struct Fetching: Sendable, Hashable {
        /// How long and how many polls of web couriers are held open.
        package var polls = CourierPolls.Settings()
        /// The limits of what waits for one web courier.
        package var bounds = CourierBounds()
    }

    /// The listener for clients and change sources.
    package var http = Listener(host: "127.0.0.1", port: 8080)
    /// The listener for the administrative surface.
    package var admin = Listener(host: "127.0.0.1", port: 8081)
    /// The limits of connections, pace and rates.
    package var listening = ListenerSettings()
    /// The token of the administrative surface; `nil` closes it.
    package var adminToken: String?
    /// The operator's console.
    package var console = ConsoleSettings()
    /// The file of the certificate chain in PEM form.
    var certificateFile: String?
    /// The file of the certificate's private key in PEM form.
    var privateKeyFile: String?
    /// The file of the certificate authorities by which commands verify the relay, in PEM form.
    package var caFile: String?
    /// The configured URL at which clients reach the relay; `nil` if none was configured.
    var givenPublicURL: String?
    /// The settings for clients that fetch their notifications.
    package var fetching = Fetching()
    /// The URL at which users sign in.
    package var signInURL: String?
    /// The path of the store's file.
    package var storagePath = StoreSettings.usualPath
    /// The URL of the database that is the store instead of a file.
    package var storageURL: String?
    /// The schema of that database.
    package var storageSchema = PostgresPlace.usualSchema
    /// Whether a server without a synchronous standby is refused.
    var requiresStandby = false
    /// How relays of one store reach each other.
    var nodes = NodeSettings()
    /// The values that all relays of one store should have alike, as they are set here.
    private(set) var agreed = AgreedSettings([:])
    /// The settings of the store.
    package var store = StoreSettings()
    /// The settings of continuous backup.
    package var backup = BackupConfiguration()
    /// The configured keys that encrypt the secrets in the store.
    var secretKeys = SecretKeyTexts()
    /// How the push gateway is reached.
    package var gateway = GatewayAccess()
    /// The limits of sending deliveries.
    package var delivery = DeliveryBounds()
    /// The lowest level that is logged.
    package var logLevel = Logger.Level.info
    /// The format of the log.
    package var logForm = LogForm.text
    /// The settings of the access log.
    var accessLog = AccessLog.Settings()
    /// The grace period: how long what is in flight may take to finish during the shutdown.
    package var shutdownGrace = Duration.seconds(20)
    /// How long data is kept, and when changes are refused.
    var upkeep = Upkeep.Settings()
    /// The number of fired subscriptions above which a change's fan-out becomes ranges.
    package var rangeThreshold = Limits.maximumMatchesAtOnce
    /// The limits of requests.
    package var limits = RequestLimits()
    /// The limits of record queries.
    package var queries = QueryAdmission.Settings()
    /// The limits of connected clients.
    var live = LiveBounds()
    /// The shortest time between two snapshots of the index; `nil` keeps none.
    package var snapshotInterval: Duration? = .seconds(600)
    /// The settings, one a line, with secrets hidden.
    package private(set) var description = ""

    /// The default configuration; every default is here or in the settings of the room that uses
    /// it.
    static let standard = RelayConfiguration()

    private init() {
        // A relay without a store asks for permission to create one; tests and tools just create
        // it.
        store.creation = .never
    }

    /// Whether the administrative surface shares the clients' listener.
    package var sharesListener: Bool { http == admin && http.port != 0 }

    /// The files for TLS; `nil` serves plain HTTP.
    package var tls: TLSFiles? {
        guard let certificateFile, let privateKeyFile else { return nil }
        return TLSFiles(certificate: certificateFile, privateKey: privateKeyFile)
    }

    /// Whether ``publicURL`` was configured, and not derived from the listener's address.
    package var hasPublicURL: Bool { givenPublicURL != nil }

    /// The URL at which clients reach the relay, without a slash at the end.
    package var publicURL: String {
        let scheme = tls == nil ? "http" : "https"
        return Self.withoutSlash(givenPublicURL ?? "\(scheme)://\(http.authority)")
    }

    /// The default limit of simultaneous queries of one container, which a container may override.
    var queriesPerContainer: Int {
        get { queries.placesOfContainer }
        set {
            queries.placesOfContainer = newValue
            store.quotas[.queries] = newValue
        }
    }

    /// Decodes the settings.
    ///
    /// - Throws: ``ConfigurationError`` with all problems.
    package init(_ values: ConfigurationValues) throws(ConfigurationError) {
        self = Self.standard
        let refused = values.apply(to: &self)
        var problems = values.problems
        if (certificateFile == nil) != (privateKeyFile == nil) {
            problems.append(
                "tls.certificateFile and tls.privateKeyFile: one of them is not set; set both or "
                    + "neither")
        }
        if backup.url != nil, storageURL != nil {
            problems.append(
                "backup.url: continuous backup works only for a store in a file (storage.path); "
                    + "back up a store on a server (storage.url) with the server's own tools")
        }
        problems += placeProblems + nodes.problems(of: storageSchema, at: storageURL)
        problems += bodyProblems
        let secrets = SecretKeyReading(secretKeys)
        problems += secrets.problems + refused
        guard problems.isEmpty else { throw ConfigurationError(problems) }
        store.secrets = secrets.vault
        secretKeys = SecretKeyTexts()
        description = values.description
        agreed = values.agreed(gateway)
    }

    /// The problems of the database URL and schema that are known without a connection.
    private var placeProblems: [String] {
        guard let storageURL else { return [] }
        do throws(StorageError) {
            _ = try PostgresPlace(url: storageURL, schema: storageSchema)
            return []
        } catch {
            guard case .inaccessible(let name, let reason) = error else { return ["\(error)"] }
            return ["\(name): \(reason)"]
        }
    }

    /// The problem of a webhook limit above what the body memory admits.
    ///
    /// Such webhooks would be allowed, but answered "try again later" forever.
    private var bodyProblems: [String] {
        let room = listening.rates.bodyBytes
        let longest = BodyBudget.longestBody(within: room)
        guard limits.webhookBytes > longest else { return [] }
        return [
            "http.bodyMegabytes: with \(room / .mebibyte) MiB, one body can have at most "
                + "\(longest) bytes, but limits.webhookBytes allows \(limits.webhookBytes); raise "
                + "the first setting or lower the second"
        ]
    }

    static func withoutSlash(_ url: String) -> String {
        url.hasSuffix("/") ? String(url.dropLast()) : url
    }
}
