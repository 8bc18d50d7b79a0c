extension ConfigurationKeys {
    /// The keys that say how relays of one store on a server reach each other.
    static let nodes = [
        ConfigurationKey(
            "nodes.name", .text,
            "The name of this relay in belfry nodes, in /readyz and in the logs of others: "
                + "\(NodeSettings.nameRule); by default the machine's name and the port of "
                + "http.port, as relay-a:8080.",
            apply: { $1.nodes.call($0) }),
        ConfigurationKey(
            "nodes.advertise", .text, default: "auto",
            "Where other relays of the same storage.url reach this one, to hand it their calls "
                + "while it owns the store: \(NodeSettings.rule). auto is the address by which "
                + "this machine reaches the database; with none, a relay that stands by answers "
                + "nothing.",
            apply: { $1.nodes.advertise($0) }),
        ConfigurationKey(
            "nodes.host", text: \.nodes.host,
            "The address of the listener for other relays; by default the advertised address, or "
                + "every address if a name is advertised."),
        ConfigurationKey(
            "nodes.port", number: \.nodes.port, 0...65_535,
            "The port of the listener for other relays; 0 takes the advertised one, or a free "
                + "one."),
        ConfigurationKey(
            "nodes.waitSeconds", time: \.nodes.patience, in: .seconds(1), 0...60,
            "How long a call waits while no relay owns the store; after that, it is answered with "
                + "503."),
        ConfigurationKey(
            "nodes.warm", isOn: \.nodes.isWarm,
            "Whether a relay that stands by keeps the subscriptions and devices in memory, as the "
                + "owner does, and follows their edits, so that it need not load them when it "
                + "takes the owner's place."),
        ConfigurationKey(
            "nodes.schemas", list: \.nodes.schemas,
            "The schemas of all shards of the service, including that of storage.schema: any relay "
                + "hands a call to the owner of the store in which its container lies; without "
                + "any, the store is the only one."),
        ConfigurationKey(
            "nodes.balance", isOn: \.nodes.isBalancing,
            "Whether the stores of nodes.schemas are spread over the machines: the owner of a "
                + "store that another machine should own hands it over."),
        ConfigurationKey(
            "nodes.machine", .text,
            "The name of the machine on which this relay runs, by which stores are spread: "
                + "\(NodeSettings.nameRule); by default the machine's own name. Relays of several "
                + "stores on one machine must give the same name.",
            apply: { $1.nodes.stand(on: $0) }),
    ]
}
