import StoragePostgreSQL

/// The settings of how relays of one store reach each other.
struct NodeSettings: Sendable, Hashable {
    /// The address under which other relays reach this one.
    enum Advertised: Sendable, Hashable {
        /// The address of this machine from which it reaches the database.
        case own
        /// No address: the relay forwards no calls, and takes none.
        case none
        /// A host, and a port if it differs from the one on which it listens.
        case host(String, port: Int?)
    }

    /// The relay's name in messages; `nil` for its machine and the port for clients.
    var name: String?
    var advertised = Advertised.own
    /// The address on which the relay listens, if it is not the advertised one.
    var host: String?
    /// Its port; 0 for the advertised port, or for any free one.
    var port = 0
    /// How long a call waits while no relay owns the store.
    var patience = Duration.seconds(10)
    /// Whether a standby relay keeps the state of the store in memory.
    var isWarm = true
    /// The schemas of all shards of the service, each of which is a store; empty if there is only
    /// one store.
    var schemas: [String] = []
    /// The name of the relay's machine; `nil` for the machine's host name.
    var machine: String?
    /// Whether a store is handed to the machine that should own it.
    var isBalancing = true
    /// The times of a hand-over.
    var handOver = HandOverPatience.Settings()

    /// Whether the stores of several shards are spread over machines.
    var isSpreading: Bool { isBalancing && schemas.count > 1 }

    /// Whether there are other shards than the relay's own.
    var isSharded: Bool { schemas.count > 1 }

    /// The maximum number of shards of a service: each relay looks at all of them four times a
    /// second.
    static let mostSchemas = 64

    /// Returns what is wrong with ``schemas`` for a relay whose own schema is `own`.
    ///
    /// `url` is the configured URL of the database.
    func problems(of own: String, at url: String?) -> [String] {
        guard !schemas.isEmpty else { return [] }
        var problems: [String] = []
        if url == nil {
            problems.append(
                "nodes.schemas: shards need a PostgreSQL database, but storage.url is not set")
        }
        if advertised == .none {
            problems.append(
                "nodes.schemas: relays of several shards forward calls to each other, but "
                    + "nodes.advertise is none")
        }
        if schemas.count > Self.mostSchemas {
            problems.append(
                "nodes.schemas: at most \(Self.mostSchemas) schemas are allowed, but there are "
                    + "\(schemas.count)")
        }
        for name in Set(schemas).sorted() {
            if !PostgresPlace.isSchema(name) {
                problems.append(
                    "nodes.schemas: \"\(name)\" is not the name of a schema: it must be "
                        + "\(PostgresPlace.schemaRule), and must not begin with pg_")
            }
            if schemas.count(where: { $0 == name }) > 1 {
                problems.append("nodes.schemas: \(name) is named more than once")
            }
        }
        if !schemas.contains(own) {
            problems.append(
                "nodes.schemas: the relay's own schema \(own) (storage.schema) is not among them")
        }
        return problems
    }

    /// The values that ``advertise(_:)`` accepts, for messages.
    static let rule = "auto, none, a host, or a host and a port, such as relay-a.example:8092"

    /// The rule for names, for messages.
    static let nameRule = "1 to 100 visible characters of ASCII"

    /// Sets the name from the configuration; returns what is wrong with it.
    mutating func call(_ text: String) -> [String] {
        name = text
        return Self.isName(text) ? [] : ["nodes.name: must be \(Self.nameRule)"]
    }

    /// Sets the name of the machine from the configuration; returns what is wrong with it.
    mutating func stand(on text: String) -> [String] {
        machine = text
        return Self.isName(text) ? [] : ["nodes.machine: must be \(Self.nameRule)"]
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && text.utf8.count <= 100
    }

    /// Returns the name of a relay on `machine` whose clients connect to `port`.
    ///
    /// The machine's name alone would be that of every relay on it.
    func named(on machine: String, port: Int) -> String { name ?? "\(machine):\(port)" }

    /// Sets the advertised address from the configuration; returns what is wrong with it.
    mutating func advertise(_ text: String) -> [String] {
        switch text {
        case "auto": advertised = .own
        case "none": advertised = .none
        default:
            if let address = NodeAddress(text) {
                advertised = .host(address.host, port: address.port)
            } else if let host = NodeAddress.host(text) {
                advertised = .host(host, port: nil)
            } else {
                return ["nodes.advertise: must be \(Self.rule)"]
            }
        }
        return []
    }

    /// Returns where to listen on a machine that reaches the database from `own`; `nil` for
    /// nowhere.
    func listening(on own: String) -> NodeAddress? {
        switch advertised {
        case .none: nil
        case .own: NodeAddress(host: host ?? own, port: port)
        case .host(let name, let advertisedPort):
            NodeAddress(
                host: host ?? (name.contains(":") ? "::" : "0.0.0.0"),
                port: port == 0 ? advertisedPort ?? 0 : port)
        }
    }

    /// Returns the address for other relays, once the listener has its port.
    func endpoint(on own: String, port: Int) -> NodeAddress {
        switch advertised {
        case .own, .none: NodeAddress(host: own, port: port)
        case .host(let name, let advertisedPort):
            NodeAddress(host: name, port: advertisedPort ?? port)
        }
    }
}
