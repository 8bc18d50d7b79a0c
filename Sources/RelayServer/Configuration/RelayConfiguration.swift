import Delivery
import Gateway
package import Logging
package import RelayModel
package import Storage
import StoragePostgreSQL

/// How the relay runs: decoded once, validated once, and handed to the rooms in parts.
package struct RelayConfiguration: Sendable, CustomStringConvertible {
    /// Where something is served.
    package struct Listener: Sendable, Hashable {
        /// The address.
        package var host: String
        /// The port; 0 takes a free one.
        package var port: Int

        /// Host and port as an URL has them; where it listens at all addresses, the loopback's.
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

    /// The files of TLS.
    package struct TLSFiles: Sendable, Hashable {
        /// The certificate chain in PEM form.
        package var certificate: String
        /// The private key in PEM form.
        package var privateKey: String
    }

    /// How the push gateway is reached.
    package struct GatewayAccess: Sendable, Hashable {
        /// The URL of both environments, instead of ``development`` and ``production``.
        var both: String?
        /// The URL of development tokens.
        var development = "https://api.sandbox.push.apple.com"
        /// The URL of production tokens.
        var production = "https://api.push.apple.com"
        /// The certificate authorities instead of the system's, in PEM form.
        package var caFile: String?
        /// The connections to each gateway at most.
        package var connections = CurlGatewaySettings().connectionsPerCredential
        /// The URL of the proxy on the way to the gateway, which may hold a password.
        package var proxy: String?

        /// The URL of the gateway that issued tokens of `environment`, without a slash at the end.
        package func url(of environment: GatewayEnvironment) -> String {
            let url =
                switch environment {
                case .development: development
                case .production: production
                }
            return RelayConfiguration.withoutSlash(both ?? url)
        }
    }

    /// How deliveries are sent.
    package struct DeliveryBounds: Sendable, Hashable {
        /// The deliveries that are sent and not yet settled.
        package var inFlight = 4096
        /// The deliveries of ranges that are sent and not yet settled.
        package var rangeInFlight = DeliverySettings().rangeWindow
        /// The retries that are sent and not yet settled.
        package var retryInFlight = DeliverySettings().retryWindow
        /// The answered sends of one delivery before it becomes a dead letter.
        package var maximumAttempts = RetryPolicy().maximumAttempts
        /// The background pushes of one device in an hour; 0 for any number.
        package var silentPushesPerHour = DeliverySettings().silentPushesPerHour
    }

    /// What is kept for those who fetch their notifications.
    package struct Fetching: Sendable, Hashable {
        /// How polls of web couriers are held.
        package var polls = CourierPolls.Settings()
        /// What waits for one web courier.
        package var bounds = CourierBounds()
    }

    /// Where clients and change sources are served.
    package var http = Listener(host: "127.0.0.1", port: 8080)
    /// Where the administrative surface is served.
    package var admin = Listener(host: "127.0.0.1", port: 8081)
    /// Who may come in, and how fast they must be.
    package var listening = ListenerSettings()
    /// The token of the administrative surface; `nil` closes it.
    package var adminToken: String?
    /// The operator's console.
    package var console = ConsoleSettings()
    /// The certificate chain in PEM form.
    var certificateFile: String?
    /// The private key of the certificate in PEM form.
    var privateKeyFile: String?
    /// The authorities by which commands verify the relay's certificate, in PEM form.
    package var caFile: String?
    /// How clients reach the relay, if that was configured.
    var givenPublicURL: String?
    /// What is kept for those who fetch their notifications.
    package var fetching = Fetching()
    /// Where users sign in.
    package var signInURL: String?
    /// The file of the store.
    package var storagePath = StoreSettings.usualPath
    /// The database that is the store instead of a file.
    package var storageURL: String?
    /// The schema of that database.
    package var storageSchema = PostgresPlace.usualSchema
    /// How relays of one store reach each other.
    var nodes = NodeSettings()
    /// What all relays of one store should have alike, as it is set here.
    private(set) var agreed = AgreedSettings([:])
    /// How the store works.
    package var store = StoreSettings()
    /// How the store is backed up continuously.
    package var backup = BackupConfiguration()
    /// What was said of the keys that encrypt the secrets in the store.
    var secretKeys = SecretKeyTexts()
    /// How the push gateway is reached.
    package var gateway = GatewayAccess()
    /// How deliveries are sent.
    package var delivery = DeliveryBounds()
    /// What is logged at least.
    package var logLevel = Logger.Level.info
    /// How lines of the log are written.
    package var logForm = LogForm.text
    /// Which requests are logged.
    var accessLog = AccessLog.Settings()
    /// How long what is in flight may take to finish at the end.
    package var shutdownGrace = Duration.seconds(20)
    /// How long things are kept, and when changes are refused.
    var upkeep = Upkeep.Settings()
    /// The subscriptions that a change fires beyond which they become ranges.
    package var rangeThreshold = Limits.maximumMatchesAtOnce
    /// What requests may ask for.
    package var limits = RequestLimits()
    /// What queries of records may use.
    package var queries = QueryAdmission.Settings()
    /// What connected clients may take.
    var live = LiveBounds()
    /// The least time from one snapshot of the index to the next; `nil` keeps none.
    package var snapshotInterval: Duration? = .seconds(600)
    /// The settings, one a line, secrets hidden.
    package private(set) var description = ""

    /// The configuration of which nothing was said: every default stands here, or in the settings
    /// of the room that it is for.
    static let standard = RelayConfiguration()

    private init() {
        // A relay that finds no store asks; tests and tools just make one.
        store.creation = .never
    }

    /// Whether the administrative surface is served where clients are.
    package var sharesListener: Bool { http == admin && http.port != 0 }

    /// The files of TLS; `nil` serves plain HTTP.
    package var tls: TLSFiles? {
        guard let certificateFile, let privateKeyFile else { return nil }
        return TLSFiles(certificate: certificateFile, privateKey: privateKeyFile)
    }

    /// Whether ``publicURL`` was configured, and not made of the listener's address.
    package var hasPublicURL: Bool { givenPublicURL != nil }

    /// How clients reach the relay, without a slash at the end.
    package var publicURL: String {
        let scheme = tls == nil ? "http" : "https"
        return Self.withoutSlash(givenPublicURL ?? "\(scheme)://\(http.authority)")
    }

    /// The queries of one container at a time, which it may set for itself.
    var queriesPerContainer: Int {
        get { queries.placesOfContainer }
        set {
            queries.placesOfContainer = newValue
            store.quotas[.queries] = newValue
        }
    }

    /// Decodes the settings.
    ///
    /// - Throws: ``ConfigurationError`` with everything that is wrong.
    package init(_ values: ConfigurationValues) throws(ConfigurationError) {
        self = Self.standard
        let refused = values.apply(to: &self)
        var problems = values.problems
        if (certificateFile == nil) != (privateKeyFile == nil) {
            problems.append(
                "tls.certificateFile and tls.privateKeyFile: one of them is not set; both or "
                    + "none are needed")
        }
        if backup.url != nil, storageURL != nil {
            problems.append(
                "backup.url: continuous backup is for a file (storage.path); back up a store on a "
                    + "server (storage.url) with the server's own tools")
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

    /// Why the database that is the store cannot be one, before anybody asks it.
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

    /// Webhooks that are allowed and never let in: they would be asked to come again without end.
    private var bodyProblems: [String] {
        let room = listening.rates.bodyBytes
        let longest = BodyBudget.longestBody(within: room)
        guard limits.webhookBytes > longest else { return [] }
        return [
            "http.bodyMegabytes: of \(room / .mebibyte) MiB one body has \(longest) bytes at the "
                + "most, and limits.webhookBytes allows \(limits.webhookBytes); raise the one or "
                + "lower the other"
        ]
    }

    static func withoutSlash(_ url: String) -> String {
        url.hasSuffix("/") ? String(url.dropLast()) : url
    }
}
