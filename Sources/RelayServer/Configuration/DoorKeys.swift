import RelayModel

extension ConfigurationKeys {
    /// The settings of the doors: how many may come in, how fast they must be, and how often.
    static let doors = [
        ConfigurationKey(
            "http.metrics", .choice(["off", "on"]), default: "off",
            "Whether /metrics is served to clients too, and not to the operator alone."),
        ConfigurationKey(
            "http.trustedProxies", .list,
            "The addresses of proxies, as 10.0.0.0/8 or one by one: X-Forwarded-For and "
                + "X-Forwarded-Proto are believed of them alone."),
        ConfigurationKey(
            "http.connections", .integer(8...1_000_000), default: "10000",
            "The connections of clients at a time; fewer if the system allows fewer open files."),
        ConfigurationKey(
            "http.connectionsPerAddress", .integer(0...1_000_000), default: "0",
            "Those of one address among them; 0 for the half. Trusted proxies have no such limit."),
        ConfigurationKey(
            "http.headSeconds", .integer(1...600), default: "15",
            "How long the head of a request may take, with the handshake of TLS."),
        ConfigurationKey(
            "http.bodySeconds", .integer(1...600), default: "30",
            "How long a body may stand still, and may take besides a second for each 8 KiB."),
        ConfigurationKey(
            "http.answerSeconds", .integer(1...600), default: "30",
            "The same for taking an answer."),
        ConfigurationKey(
            "http.idleSeconds", .integer(1...3600), default: "75",
            "How long a connection may stay without a request."),
        ConfigurationKey(
            "http.bodyMegabytes", .integer(8...65_536), default: "256",
            "The bodies of requests that are held in memory at a time, one container's to the "
                + "half; beyond, a request waits for 5 s and gets 503."),
        ConfigurationKey(
            "admin.connections", .integer(4...10_000), default: "32",
            "The connections at the administrative surface's own port at a time."),
        ConfigurationKey(
            "rates.address", .integer(0...1_000_000),
            "The requests of one address in a second, twice as many at once; 0 for any number. "
                + "Unless given 10000, and any number of this machine's own addresses."),
        ConfigurationKey(
            "rates.key", .integer(0...1_000_000), default: "20000",
            "The requests with one key, or of one change source, in a second; 0 for any number."),
        ConfigurationKey(
            "rates.user", .integer(0...1_000_000), default: "1000",
            "The requests of one user in a second, ten times as many at once; 0 for any number."),
        ConfigurationKey(
            "rates.containers", .list,
            "What holds for single containers instead of rates.key and rates.user, as "
                + "iCloud.com.example.Art=500/20."),
    ]
}

/// Who may come in, and how fast they must be.
package struct DoorSettings: Sendable, Hashable {
    /// Whether the metrics are shown to clients.
    package var showsMetrics = false
    /// The proxies that are believed.
    package var proxies = TrustedProxies()
    /// Connections of clients.
    var connections = 10_000
    /// Those of one address; `nil` for the half.
    var connectionsPerAddress: Int?
    /// Connections of the operator.
    var operators = 32
    /// How often clients may come.
    var rates = RateSettings()
    /// How fast clients must be.
    var pace = ConnectionPace.Bounds()

    init(_ values: ConfigurationValues, problems: inout [String]) {
        showsMetrics = values.text("http.metrics") == "on"
        var ranges: [AddressRange] = []
        for text in (values.text("http.trustedProxies") ?? "").split(separator: ",") {
            let plain = String(text.trimmingPrefix(while: \.isWhitespace))
            if let range = AddressRange(text: plain) {
                ranges.append(range)
            } else {
                problems.append(
                    "http.trustedProxies: \"\(plain.shortened)\" is no address, and no network "
                        + "such as 10.0.0.0/8")
            }
        }
        proxies = TrustedProxies(ranges)
        func seconds(_ name: String) -> Duration? { values.number(name).map { .seconds($0) } }
        connections = values.number("http.connections") ?? connections
        let perAddress = values.number("http.connectionsPerAddress") ?? 0
        connectionsPerAddress = perAddress > 0 ? perAddress : nil
        operators = values.number("admin.connections") ?? operators
        rates = Self.rates(values, problems: &problems)
        pace.head = seconds("http.headSeconds") ?? pace.head
        pace.body = seconds("http.bodySeconds") ?? pace.body
        pace.answer = seconds("http.answerSeconds") ?? pace.answer
        pace.idle = seconds("http.idleSeconds") ?? pace.idle
    }

    private static func rates(
        _ values: ConfigurationValues, problems: inout [String]
    ) -> RateSettings {
        var rates = RateSettings()
        rates.address = values.number("rates.address")
        rates.key = values.number("rates.key") ?? rates.key
        rates.user = values.number("rates.user") ?? rates.user
        rates.bodyBytes = (values.number("http.bodyMegabytes") ?? 256) * 1_048_576
        for text in (values.text("rates.containers") ?? "").split(separator: ",") {
            let plain = String(text.trimmingPrefix(while: \.isWhitespace))
            guard let match = plain.wholeMatch(of: /([^=]+)=([0-9]{1,7})\/([0-9]{1,7})/),
                let container = ContainerID(rawValue: String(match.1)), let key = Int(match.2),
                let user = Int(match.3)
            else {
                problems.append(
                    "rates.containers: \"\(plain.shortened)\" must be a container, an equals sign, "
                        + "its rate of keys, a slash and its rate of users")
                continue
            }
            rates.containers[container] = RateSettings.Own(key: key, user: user)
        }
        return rates
    }

    /// What the clients' door takes, where the process may have `files` open.
    func clients(_ files: OpenFiles, gateway: Int) -> DoorBook.Bounds {
        let count = files.connections(wished: connections, operators: operators, gateway: gateway)
        return DoorBook.Bounds(
            connections: count,
            perAddress: min(count, connectionsPerAddress ?? max(1, count / 2)))
    }

    /// What the operator's door takes: however many, from wherever.
    var operatorsDoor: DoorBook.Bounds {
        DoorBook.Bounds(connections: operators, perAddress: operators)
    }
}
