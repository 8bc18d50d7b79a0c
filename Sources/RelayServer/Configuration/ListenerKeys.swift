import RelayModel
import Storage

extension ConfigurationKeys {
    /// The keys of the listeners: how many connections they accept, how fast clients must be, and
    /// how often they may call.
    static let listening = [
        ConfigurationKey(
            "http.metrics", isOn: \.listening.showsMetrics,
            "Whether clients may read /metrics too, not only the operator."),
        ConfigurationKey(
            "http.trustedProxies", .list,
            "The addresses of proxies, as 10.0.0.0/8 or one by one: the relay believes "
                + "X-Forwarded-For and X-Forwarded-Proto from these alone.",
            apply: { $1.listening.setProxies($0) }),
        ConfigurationKey(
            "http.connections", number: \.listening.connections, 8...1_000_000,
            "How many connections clients may have at a time; fewer if the system allows fewer "
                + "open files."),
        ConfigurationKey(
            "http.connectionsPerAddress", zeroForNone: \.listening.connectionsPerAddress,
            0...1_000_000,
            "How many connections one address may have at a time; 0 for half of all. Trusted "
                + "proxies have no such limit."),
        ConfigurationKey(
            "http.headSeconds", time: \.listening.pace.head, in: .seconds(1), 1...600,
            "How long the head of a request may take, including the TLS handshake."),
        ConfigurationKey(
            "http.bodySeconds", time: \.listening.pace.body, in: .seconds(1), 1...600,
            "How long a body may stand still, and how long it may take in addition to a second for "
                + "each 8 KiB."),
        ConfigurationKey(
            "http.answerSeconds", time: \.listening.pace.answer, in: .seconds(1), 1...600,
            "How long the taking of an answer may stand still, and how long it may take in "
                + "addition to a second for each 8 KiB."),
        ConfigurationKey(
            "http.idleSeconds", time: \.listening.pace.idle, in: .seconds(1), 1...3600,
            "How long a connection may stay without a request."),
        ConfigurationKey(
            "http.bodyMegabytes", number: \.listening.rates.bodyBytes, 8...65_536, unit: .mebibyte,
            "The memory for bodies of requests at a time, and half of it for those of one "
                + "container; beyond that, a request waits for 5 s and gets 503. Long answers that "
                + "a listener's clients have not taken may have as much; beyond that, the relay "
                + "closes connections."),
        ConfigurationKey(
            "admin.connections", number: \.listening.operators, 4...10_000,
            "How many connections the administrative surface's own port takes at a time."),
        ConfigurationKey(
            "console.enabled", isOn: \.console.isEnabled,
            "Whether the administrative surface serves the operator's console, at /console/."),
        ConfigurationKey(
            "console.idleMinutes", time: \.console.idle, in: .minute, 1...1440,
            "How long an operator stays signed in at the console without making a call."),
        ConfigurationKey(
            "console.sessionHours", time: \.console.whole, in: .hour, 1...720,
            "How long an operator stays signed in at the console at most."),
        ConfigurationKey(
            "rates.address", number: \.listening.rates.address, 0...1_000_000,
            "How many requests one address may make in a second, and twice as many at once; 0 for "
                + "any number. By default 10000, and any number from this machine's own "
                + "addresses."),
        ConfigurationKey(
            "rates.key", number: \.listening.rates.key, 0...1_000_000,
            "How many requests one key, or one change source, may make in a second, and twice as "
                + "many at once; 0 for any number."),
        ConfigurationKey(
            "rates.user", number: \.listening.rates.user, 0...1_000_000,
            "How many requests one user may make in a second, and ten times as many at once; 0 for "
                + "any number."),
        ConfigurationKey(
            "rates.containers", .list,
            "The rates of single containers, in place of rates.key and rates.user, as "
                + "iCloud.com.example.Art=500/20.",
            apply: { $1.listening.setRates($0) }),
    ]
}

/// The settings of the listeners: limits of connections, pace and rates.
package struct ListenerSettings: Sendable, Hashable {
    /// Whether clients may read the metrics too.
    package var showsMetrics = false
    /// The proxies whose header fields about their clients are trusted.
    package var proxies = TrustedProxies()
    /// The maximum number of client connections.
    var connections = 12_000
    /// The maximum number of connections from one address; `nil` means half of `connections`.
    var connectionsPerAddress: Int?
    /// The maximum number of operator connections.
    var operators = 32
    /// How often clients may call.
    var rates = RateSettings()
    /// How fast clients must send and receive.
    var pace = ConnectionPace.Bounds()

    /// Sets the trusted proxies from a list, and returns a problem for each element that is
    /// invalid.
    mutating func setProxies(_ text: String) -> [String] {
        var problems: [String] = []
        var ranges: [AddressRange] = []
        for element in ConfigurationKey.elements(text) {
            if let range = AddressRange(text: element) {
                ranges.append(range)
            } else {
                problems.append(
                    "http.trustedProxies: \"\(element.shortened)\" is not an address or a network "
                        + "such as 10.0.0.0/8")
            }
        }
        proxies = TrustedProxies(ranges)
        return problems
    }

    /// Sets the rates of single containers from a list, and returns a problem for each element that
    /// is invalid.
    mutating func setRates(_ text: String) -> [String] {
        var problems: [String] = []
        for element in ConfigurationKey.elements(text) {
            guard let match = element.wholeMatch(of: /([^=]+)=([0-9]{1,7})\/([0-9]{1,7})/),
                let container = ContainerID(rawValue: String(match.1)), let key = Int(match.2),
                let user = Int(match.3), max(key, user) <= RequestRates.largest
            else {
                problems.append(
                    "rates.containers: \"\(element.shortened)\" must have the form "
                        + "CONTAINER=KEYS/USERS, with a rate of keys and a rate of users, each "
                        + "from 0 to \(RequestRates.largest)")
                continue
            }
            let own = RateSettings.Own(key: key, user: user)
            if rates.containers.updateValue(own, forKey: container) != nil {
                problems.append("rates.containers: \(container) is given twice")
            }
        }
        return problems
    }

    /// Returns the limits of the clients' listener if the process may have `files` open.
    func clients(_ files: OpenFiles, gateway: Int) -> ConnectionCounts.Bounds {
        let count = files.connections(wished: connections, operators: operators, gateway: gateway)
        return ConnectionCounts.Bounds(
            connections: count,
            perAddress: min(count, connectionsPerAddress ?? max(1, count / 2)))
    }

    /// Returns a warning for the operator if `files` are too few for all configured connections.
    func shortage(_ files: OpenFiles, gateway: Int) -> String? {
        let count = clients(files, gateway: gateway).connections
        guard count < connections else { return nil }
        return
            "only \(count) client connections are accepted, not the \(connections) of "
            + "http.connections, because the process may open only \(files.limit) files: raise "
            + "the limit (LimitNOFILE of the unit, ulimit -Hn)"
    }

    /// The limits of the administrative listener.
    ///
    /// One address never gets all connections, and an idle connection makes room for a new one. So
    /// no client can keep the operator out.
    var administrativeListener: ConnectionCounts.Bounds {
        var bounds = ConnectionCounts.Bounds(
            connections: operators, perAddress: operators - operators / 4)
        bounds.makesRoom = true
        return bounds
    }
}
