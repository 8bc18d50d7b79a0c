import Live

extension ConfigurationKeys {
    /// The keys of connected clients.
    static let live = [
        ConfigurationKey(
            "live.allowedOrigins", .list,
            "The origins of the pages that may connect, as https://example.com, or as "
                + "capacitor://localhost for an app that is made of pages; by default any. "
                + "Programs other than browsers send no origin and are let in.",
            apply: { $1.live.setOrigins($0) }),
        ConfigurationKey(
            "live.connections", number: \.live.connections, 1...1_000_000,
            "How many connections, streams and polls connected clients may have at a time; fewer "
                + "where needed, so that one in thirty-two of http.connections stays free."),
        ConfigurationKey(
            "live.connectionsPerContainer", zeroForNone: \.live.connectionsPerContainer,
            0...1_000_000,
            "How many of the connections of live.connections one container may have; 0 for all but "
                + "one in sixty-four."),
        ConfigurationKey(
            "live.connectionsPerUser", number: \.live.connectionsPerUser, 1...100_000,
            "How many connections, streams and polls one user may have at a time."),
        ConfigurationKey(
            "live.hellosPerSecond", number: \.live.hellosPerSecond, 1...1_000_000,
            "How many clients may begin a connection or a stream in a second; the relay tells "
                + "others when to come back."),
        ConfigurationKey(
            "live.queriesPerSet", number: \.live.queriesPerSet, 1...1000,
            "How many queries one client may show at a time."),
        ConfigurationKey(
            "live.resultRecords", number: \.live.engine.recordsPerResult, 1...200_000,
            "How many records a result without a limit may have."),
        ConfigurationKey(
            "live.resultMegabytes", number: \.live.engine.bytesPerResult, 1...256, unit: .mebibyte,
            "About how large a result without a limit may be."),
        ConfigurationKey(
            "live.windowRecords", number: \.live.engine.membersPerWindow, 1...1_000_000,
            "From how many records a result with a limit may be chosen."),
        ConfigurationKey(
            "live.memoryMegabytes", number: \.live.engine.memory, 1...65_536, unit: .mebibyte,
            "The memory for what all results hold, about, and half of it for those of one "
                + "container; beyond that, the relay ends results of whoever has most."),
        ConfigurationKey(
            "live.readings", number: \.live.engine.readings, 1...64,
            "How many results are read from the store at the same time."),
        ConfigurationKey(
            "live.readingRecords", number: \.live.engine.rowsPerReading, 1...100_000_000,
            "How many records the relay may look at for one result."),
        ConfigurationKey(
            "live.resumeChanges", number: \.live.engine.entriesPerResume, 0...200_000,
            "How many changes of a container the relay reads for clients that come back; a client "
                + "that missed more begins anew."),
        ConfigurationKey(
            "live.resumeMegabytes", number: \.live.engine.bytesPerResume, 1...4096, unit: .mebibyte,
            "The size of the changes of a container that the relay reads for clients that come "
                + "back."),
        ConfigurationKey(
            "live.drainSeconds", time: \.live.drain, in: .seconds(1), 1...600,
            "How long the relay takes at most, when it ends, to tell connected clients to come "
                + "back elsewhere."),
    ]
}

extension LiveBounds {
    /// Sets the origins of pages that may connect, and returns a problem for each element that is
    /// invalid.
    mutating func setOrigins(_ text: String) -> [String] {
        let origins = ConfigurationKey.elements(text).map { $0.lowercased() }
        // An origin has no path, so `https://example.com/` would admit no page (RFC 6454, §6.2). An
        // app that is made of pages has a scheme of its own, or only that of files.
        let origin = /file:\/\/|[a-z][a-z0-9+.\-]*:\/\/[^\/?#@\s]+/
        let wrong = origins.filter { $0.wholeMatch(of: origin) == nil }
        allowedOrigins = Set(origins.map(Self.named))
        return wrong.map {
            "live.allowedOrigins: \"\($0.shortened)\" must be an origin such as "
                + "https://example.com, without a slash at its end"
        }
    }

    /// Returns an origin as browsers write it, without the default port of its scheme.
    private static func named(_ origin: String) -> String {
        for (scheme, port) in [("https://", ":443"), ("http://", ":80")]
        where origin.hasPrefix(scheme) && origin.hasSuffix(port) {
            return String(origin.dropLast(port.count))
        }
        return origin
    }
}
