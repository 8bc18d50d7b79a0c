import Live

extension ConfigurationKeys {
    /// The settings of connected clients.
    static let live = [
        ConfigurationKey(
            "live.allowedOrigins", .list,
            "The origins of the pages that may connect, as https://example.com, or as "
                + "capacitor://localhost of an app that is made of pages; any unless given. "
                + "Programs that are no browser send none and are let in.",
            apply: { $1.live.setOrigins($0) }),
        ConfigurationKey(
            "live.connections", number: \.live.connections, 1...1_000_000,
            "The connections, streams and polls of connected clients at a time; fewer, so that one "
                + "in thirty-two of http.connections is left."),
        ConfigurationKey(
            "live.connectionsPerContainer", zeroForNone: \.live.connectionsPerContainer,
            0...1_000_000,
            "Those of one container; 0 for all but one in sixty-four."),
        ConfigurationKey(
            "live.connectionsPerUser", number: \.live.connectionsPerUser, 1...100_000,
            "Those of one user."),
        ConfigurationKey(
            "live.hellosPerSecond", number: \.live.hellosPerSecond, 1...1_000_000,
            "The clients that begin a connection or a stream in a second; others are told when to "
                + "come back."),
        ConfigurationKey(
            "live.queriesPerSet", number: \.live.queriesPerSet, 1...1000,
            "The queries that one client shows at a time."),
        ConfigurationKey(
            "live.resultRecords", number: \.live.engine.recordsPerResult, 1...200_000,
            "The records of a result without a limit."),
        ConfigurationKey(
            "live.resultMegabytes", number: \.live.engine.bytesPerResult, 1...256, unit: .mebibyte,
            "The size of such a result, about."),
        ConfigurationKey(
            "live.windowRecords", number: \.live.engine.membersPerWindow, 1...1_000_000,
            "The records among which a result with a limit is chosen."),
        ConfigurationKey(
            "live.memoryMegabytes", number: \.live.engine.memory, 1...65_536, unit: .mebibyte,
            "The memory for what all results hold, about; beyond, those of whoever has most end."),
        ConfigurationKey(
            "live.readings", number: \.live.engine.readings, 1...64,
            "The results that are read from the store at the same time."),
        ConfigurationKey(
            "live.readingRecords", number: \.live.engine.rowsPerReading, 1...100_000_000,
            "The records that are looked at for one result."),
        ConfigurationKey(
            "live.resumeChanges", number: \.live.engine.entriesPerResume, 0...200_000,
            "The changes of a container that are read for those who come back; whoever was away "
                + "for longer begins anew."),
        ConfigurationKey(
            "live.resumeMegabytes", number: \.live.engine.bytesPerResume, 1...4096, unit: .mebibyte,
            "The size of these changes."),
        ConfigurationKey(
            "live.drainSeconds", time: \.live.drain, in: .seconds(1), 1...600,
            "In how long, at most, connected clients are told to come back elsewhere at the end."),
    ]
}

extension LiveBounds {
    /// Lets the pages in whose origins a text lists, and says what it cannot read.
    mutating func setOrigins(_ text: String) -> [String] {
        let origins = ConfigurationKey.elements(text).map { $0.lowercased() }
        // An origin has no path, so `https://example.com/` would let nobody in (RFC 6454, §6.2).
        // An app that is made of pages has a scheme of its own, or no more than that of files.
        let origin = /file:\/\/|[a-z][a-z0-9+.\-]*:\/\/[^\/?#@\s]+/
        let wrong = origins.filter { $0.wholeMatch(of: origin) == nil }
        allowedOrigins = Set(origins.map(Self.named))
        return wrong.map {
            "live.allowedOrigins: \"\($0.shortened)\" is no origin such as https://example.com, "
                + "without a slash at its end"
        }
    }

    /// An origin as browsers name it, which leave out the port that goes without saying.
    private static func named(_ origin: String) -> String {
        for (scheme, port) in [("https://", ":443"), ("http://", ":80")]
        where origin.hasPrefix(scheme) && origin.hasSuffix(port) {
            return String(origin.dropLast(port.count))
        }
        return origin
    }
}
