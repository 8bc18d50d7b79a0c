extension ConfigurationKeys {
    /// How relays of one store on a server reach each other.
    static let nodes = [
        ConfigurationKey(
            "nodes.name", .text,
            "What this relay is called in belfry nodes, in /readyz and in the logs of others: "
                + "\(NodeSettings.nameRule); unless given the machine and the port of http.port, "
                + "as relay-a:8080.",
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
            "The address of the listener for other relays; unless given the advertised one, or "
                + "every one where a name is advertised."),
        ConfigurationKey(
            "nodes.port", number: \.nodes.port, 0...65_535,
            "The port of that listener; 0 takes the advertised one, or a free one."),
        ConfigurationKey(
            "nodes.waitSeconds", time: \.nodes.patience, in: .seconds(1), 0...60,
            "How long a call waits while no relay owns the store; then 503 is answered."),
        ConfigurationKey(
            "nodes.warm", isOn: \.nodes.isWarm,
            "Whether a relay that stands by has the subscriptions and devices in memory, as the "
                + "owner has them, and follows what is edited: then it need not load them when it "
                + "takes the owner's place."),
        ConfigurationKey(
            "nodes.schemas", list: \.nodes.schemas,
            "The schemas of all shards of the service, the one of storage.schema among them: any "
                + "relay hands a call to the owner of the store where its container lies; with "
                + "none, the store is the only one."),
        ConfigurationKey(
            "nodes.balance", isOn: \.nodes.isBalancing,
            "Whether the stores of nodes.schemas are spread over the machines: whoever owns one "
                + "that another machine should own hands it over."),
        ConfigurationKey(
            "nodes.machine", .text,
            "The machine on which this relay runs, by which stores are spread: "
                + "\(NodeSettings.nameRule); unless given what the machine is called. Relays of "
                + "several stores on one machine must say the same.",
            apply: { $1.nodes.stand(on: $0) }),
    ]
}
