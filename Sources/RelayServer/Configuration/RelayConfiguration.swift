package import Logging
package import RelayModel
package import Storage

/// How the relay runs: decoded once, validated once, and handed to the rooms in parts.
package struct RelayConfiguration: Sendable, CustomStringConvertible {
    /// Where something is served.
    package struct Listener: Sendable, Hashable {
        /// The address.
        package var host: String
        /// The port; 0 takes a free one.
        package var port: Int

        /// Names a place.
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
        /// The URL of development tokens, without a slash at the end.
        package var developmentURL: String
        /// The URL of production tokens, without a slash at the end.
        package var productionURL: String
        /// The certificate authorities instead of the system's, in PEM form.
        package var caFile: String?
        /// The connections to each gateway at the most.
        package var connections: Int
        /// The URL of the proxy on the way to the gateway, which may hold a password.
        package var proxy: String?

        /// The URL of the gateway that issued tokens of `environment`.
        package func url(of environment: GatewayEnvironment) -> String {
            switch environment {
            case .development: developmentURL
            case .production: productionURL
            }
        }
    }

    /// How deliveries are sent.
    package struct DeliveryBounds: Sendable, Hashable {
        /// The deliveries that are sent and not yet settled.
        package var inFlight: Int
        /// The deliveries of ranges that are sent and not yet settled.
        package var rangeInFlight: Int
        /// The retries that are sent and not yet settled.
        package var retryInFlight: Int
        /// The sends of one delivery before it becomes a dead letter.
        package var maximumAttempts: Int
        /// The background pushes of one device in an hour; 0 for any number.
        package var silentPushesPerHour: Int
    }

    /// What is kept for those who fetch their notifications.
    package struct Fetching: Sendable, Hashable {
        /// How polls of web couriers are held.
        package var desk = CourierDesk.Settings()
        /// What waits for one web courier.
        package var bounds = CourierBounds()
    }

    /// Where clients and change sources are served.
    package var http: Listener
    /// Where the administrative surface is served.
    package var admin: Listener
    /// Who may come in, and how fast they must be.
    package var doors: DoorSettings
    /// The token of the administrative surface; `nil` closes it.
    package var adminToken: String?
    /// The files of TLS; `nil` serves plain HTTP.
    package var tls: TLSFiles?
    /// The authorities by which commands verify the relay's certificate, in PEM form.
    package var caFile: String?
    /// How clients reach the relay, without a slash at the end.
    package var publicURL: String
    /// Whether ``publicURL`` was configured, and not made of the listener's address.
    package var hasPublicURL: Bool
    /// What is kept for those who fetch their notifications.
    package var fetching: Fetching
    /// Where users sign in.
    package var signInURL: String?
    /// The file of the store.
    package var storagePath: String
    /// How the store works.
    package var store: StoreSettings
    /// How the push gateway is reached.
    package var gateway: GatewayAccess
    /// How deliveries are sent.
    package var delivery: DeliveryBounds
    /// What is logged at the least.
    package var logLevel: Logger.Level
    /// How long what is in flight may take to finish at the end.
    package var shutdownGrace: Duration
    /// How long things are kept, and when changes are refused.
    var upkeep: Upkeep.Settings
    /// The subscriptions that a change fires beyond which they become ranges.
    package var rangeThreshold: Int
    /// What requests may ask for.
    package var limits: RequestLimits
    /// What queries of records may use.
    package var queries: QueryDesk.Settings
    /// From one snapshot of the index to the next at the least; `nil` keeps none.
    package var snapshotInterval: Duration?
    /// The settings, one a line, secrets hidden.
    package let description: String

    /// Whether the administrative surface is served where clients are.
    package var sharesListener: Bool { http == admin && http.port != 0 }

    /// Decodes the settings.
    ///
    /// - Throws: ``ConfigurationError`` with everything that is wrong.
    package init(_ values: ConfigurationValues) throws(ConfigurationError) {
        var problems = values.problems
        let certificate = values.text("tls.certificateFile")
        let privateKey = values.text("tls.privateKeyFile")
        if (certificate == nil) != (privateKey == nil) {
            problems.append(
                "tls.certificateFile and tls.privateKeyFile: one of them is not set; both or "
                    + "none are needed")
        }
        let secrets = SecretKeyReading(values)
        problems += secrets.problems
        doors = DoorSettings(values, problems: &problems)
        guard problems.isEmpty else { throw ConfigurationError(problems) }
        http = Listener(host: values.required("http.host"), port: values.integer("http.port"))
        admin = Listener(host: values.required("admin.host"), port: values.integer("admin.port"))
        adminToken = values.text("admin.token")
        if let certificate, let privateKey {
            tls = TLSFiles(certificate: certificate, privateKey: privateKey)
        }
        caFile = values.text("tls.caFile")
        let scheme = certificate == nil ? "http" : "https"
        publicURL = Self.withoutSlash(
            values.text("http.publicURL") ?? "\(scheme)://\(http.host):\(http.port)")
        hasPublicURL = values.text("http.publicURL") != nil
        fetching = Self.fetching(values)
        signInURL = values.text("signIn.url")
        storagePath = values.required("storage.path")
        store = Self.store(values)
        store.secrets = secrets.vault
        gateway = Self.gateway(values)
        delivery = DeliveryBounds(
            inFlight: values.integer("delivery.inFlight"),
            rangeInFlight: values.integer("delivery.rangeInFlight"),
            retryInFlight: values.integer("delivery.retryInFlight"),
            maximumAttempts: values.integer("delivery.maxAttempts"),
            silentPushesPerHour: values.integer("delivery.silentPushesPerHour"))
        logLevel = Logger.Level(rawValue: values.required("log.level")) ?? .info
        shutdownGrace = .seconds(values.integer("shutdown.graceSeconds"))
        limits = Self.limits(values)
        queries = QueryDesk.Settings(values)
        let minutes = values.integer("snapshot.minutes")
        snapshotInterval = minutes > 0 ? .seconds(minutes * 60) : nil
        upkeep = Upkeep.Settings(values)
        rangeThreshold = values.integer("fanout.rangeThreshold")
        description = values.description
    }

    private static func store(_ values: ConfigurationValues) -> StoreSettings {
        var settings = StoreSettings()
        settings.creation =
            StoreCreation(rawValue: values.required("storage.create")) ?? .never
        settings.commitDelay = .milliseconds(values.integer("storage.commitMilliseconds"))
        settings.commitChanges = values.integer("storage.commitChanges")
        settings.waitingChanges = values.integer("storage.waitingChanges")
        settings.waitingBytes = values.integer("storage.waitingMegabytes") * 1_048_576
        settings.diskReserveBytes =
            UInt64(values.integer("storage.diskReserveMegabytes")) * 1_048_576
        settings.dedupeWindow = .seconds(values.integer("storage.dedupeHours") * 3600)
        settings.walBytes = values.integer("storage.walMegabytes") * 1_048_576
        settings.inboxPerUser = values.integer("inbox.perUser")
        settings.scanningReaders = values.integer("queries.readers")
        settings.quotas = Quotas(values)
        return settings
    }

    private static func fetching(_ values: ConfigurationValues) -> Fetching {
        var fetching = Fetching()
        fetching.desk.hold = .seconds(values.integer("courier.holdSeconds"))
        fetching.desk.polls = values.integer("courier.polls")
        fetching.bounds.count = values.integer("courier.queueLength")
        fetching.bounds.age = .seconds(values.integer("courier.queueHours") * 3600)
        return fetching
    }

    /// `apns.url` stands for both environments.
    private static func gateway(_ values: ConfigurationValues) -> GatewayAccess {
        let both = values.text("apns.url")
        return GatewayAccess(
            developmentURL: withoutSlash(both ?? values.required("apns.development.url")),
            productionURL: withoutSlash(both ?? values.required("apns.production.url")),
            caFile: values.text("apns.caFile"), connections: values.integer("apns.connections"),
            proxy: values.text("apns.proxy"))
    }

    private static func limits(_ values: ConfigurationValues) -> RequestLimits {
        var limits = RequestLimits(
            requestBytes: values.integer("limits.requestBytes"),
            webhookBytes: values.integer("limits.webhookBytes"),
            operations: values.integer("limits.operations"),
            deniedRecordTypes: values.required("limits.deniedRecordTypes").split(separator: ",")
                .map { $0.trimmingPrefix(while: \.isWhitespace) }.map(String.init))
        limits.costs.perPredicate = values.integer("limits.predicateCost")
        limits.costs.perUser = values.integer("limits.userCost")
        limits.costs.perRecordType = values.integer("limits.recordTypeCost")
        return limits
    }

    private static func withoutSlash(_ url: String) -> String {
        url.hasSuffix("/") ? String(url.dropLast()) : url
    }
}
