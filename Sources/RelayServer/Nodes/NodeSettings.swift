import StoragePostgreSQL

/// How relays of one store reach each other.
struct NodeSettings: Sendable, Hashable {
    /// The name under which others reach a relay.
    enum Advertised: Sendable, Hashable {
        /// The address by which it reaches the database.
        case own
        /// None: it hands nothing on, and is handed nothing.
        case none
        /// A host, and a port if it is another than the one it listens at.
        case host(String, port: Int?)
    }

    /// What people call a relay; `nil` for its machine and the port of its clients.
    var name: String?
    var advertised = Advertised.own
    /// The address of the listener, if it is not the advertised one.
    var host: String?
    /// Its port; 0 for the advertised one, or a free one.
    var port = 0
    /// How long a call waits while no relay owns the store.
    var patience = Duration.seconds(10)
    /// Whether a relay that stands by has the state of the store in memory.
    var isWarm = true
    /// The schemas of all shards of the service, each a store; empty for one store alone.
    var schemas: [String] = []
    /// The machine on which a relay runs; `nil` for what the machine is called.
    var machine: String?
    /// Whether a store is handed to the machine that should own it.
    var isBalancing = true
    /// When it is handed over.
    var handOver = HandOverPatience.Settings()

    /// Whether the stores of several shards are spread over machines.
    var isSpreading: Bool { isBalancing && schemas.count > 1 }

    /// Whether there are other shards than the own one.
    var isSharded: Bool { schemas.count > 1 }

    /// How many shards a service may have: each relay looks at all of them four times a second.
    static let mostSchemas = 64

    /// What is wrong with ``schemas`` of a relay whose own store is in `own`; `url` is where the
    /// database is.
    func problems(of own: String, at url: String?) -> [String] {
        guard !schemas.isEmpty else { return [] }
        var problems: [String] = []
        if url == nil {
            problems.append(
                "nodes.schemas: shards are schemas of a database, and storage.url names none")
        }
        if advertised == .none {
            problems.append(
                "nodes.schemas: relays of several shards hand calls to each other, and "
                    + "nodes.advertise is none")
        }
        if schemas.count > Self.mostSchemas {
            problems.append(
                "nodes.schemas: must be at most \(Self.mostSchemas), and are \(schemas.count)")
        }
        for name in Set(schemas).sorted() {
            if !PostgresPlace.isSchema(name) {
                problems.append(
                    "nodes.schemas: \"\(name)\" is not a schema, which is "
                        + "\(PostgresPlace.schemaRule), and does not begin with pg_")
            }
            if schemas.count(where: { $0 == name }) > 1 {
                problems.append("nodes.schemas: names \(name) twice")
            }
        }
        if !schemas.contains(own) {
            problems.append(
                "nodes.schemas: the relay's own schema \(own) (storage.schema) is not among them")
        }
        return problems
    }

    /// What ``advertise(_:)`` takes.
    static let rule = "auto, none, a host, or a host and a port, as relay-a.example:8092"

    /// What a name may be.
    static let nameRule = "1 to 100 visible characters of ASCII"

    /// Takes a name as it is configured, and says what is wrong with it.
    mutating func call(_ text: String) -> [String] {
        name = text
        return Self.isName(text) ? [] : ["nodes.name: must be \(Self.nameRule)"]
    }

    /// Takes the name of the machine as it is configured, and says what is wrong with it.
    mutating func stand(on text: String) -> [String] {
        machine = text
        return Self.isName(text) ? [] : ["nodes.machine: must be \(Self.nameRule)"]
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && text.utf8.count <= 100
    }

    /// What a relay is called whose clients come to a port of a machine.
    ///
    /// The machine's name alone is that of every relay on it.
    func named(on machine: String, port: Int) -> String { name ?? "\(machine):\(port)" }

    /// Takes an address as it is configured, and says what is wrong with it.
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

    /// Where to listen, on a machine that reaches the database from `own`; `nil` for nowhere.
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

    /// What others are told, once the listener has its port.
    func endpoint(on own: String, port: Int) -> NodeAddress {
        switch advertised {
        case .own, .none: NodeAddress(host: own, port: port)
        case .host(let name, let advertisedPort):
            NodeAddress(host: name, port: advertisedPort ?? port)
        }
    }
}
