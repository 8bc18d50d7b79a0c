/// How long live clients wait for what.
enum LiveTimes {
    /// The silence after which the relay says how far it is.
    static let heartbeat = Duration.seconds(25)
    /// How long a client has for `hello` after the upgrade.
    static let hello = Duration.seconds(10)
    /// How long a client that fell behind has to read what is under way.
    static let drain = Duration.seconds(30)
    /// The silence of a client, pongs included, that ends its connection.
    static let silence = Duration.seconds(70)
    /// How long before its user token ends a client is told.
    static let notice = Duration.seconds(60)
}
