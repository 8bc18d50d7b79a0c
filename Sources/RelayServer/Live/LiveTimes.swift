/// The intervals and time limits of live connections.
enum LiveTimes {
    /// The silence after which the relay says how far everything has been sent.
    static let heartbeat = Duration.seconds(25)
    /// How long a client may take for `hello` after the upgrade.
    static let hello = Duration.seconds(10)
    /// How long a client that fell behind may take nothing of what is under way.
    static let drain = Duration.seconds(30)
    /// The silence of a client, pongs included, that ends its connection.
    static let silence = Duration.seconds(70)
    /// How long before the end of its user token a client is warned.
    static let notice = Duration.seconds(60)
}
