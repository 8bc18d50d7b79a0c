import Storage

extension ConfigurationKeys {
    /// The keys of record queries.
    static let queries = [
        ConfigurationKey(
            "queries.readers", number: \.store.scanningReaders, 1...64,
            "How many queries of records read at the same time, in turns; each takes a processor."),
        ConfigurationKey(
            "queries.open", number: \.queries.places, 1...10_000,
            "How many queries of records may be open at a time; beyond that, the relay answers "
                + "429, except to a container of which none is open."),
        ConfigurationKey(
            "queries.perContainer", number: \.queriesPerContainer, 1...10_000,
            "How many queries of records one container may have open at a time; one user may have "
                + "half of these, and so may all together who are not signed in."),
        ConfigurationKey(
            "queries.rehearsals", number: \.queries.rehearsals, 1...1000,
            "How many rehearsals of subscriptions may run at a time, one for each user; beyond "
                + "that, the relay answers 429, except to a container of which none runs."),
        ConfigurationKey(
            "queries.records", number: \.queries.rows, 1...1_000_000_000,
            "The records that one query may look at before its page ends."),
        ConfigurationKey(
            "queries.seconds", time: \.queries.time, in: .seconds(1), 1...3600,
            "How long one query may take before its page ends."),
        ConfigurationKey(
            "queries.uploadSeconds", time: \.queries.uploadTime, in: .seconds(1), 1...3600,
            "How long one rehearsal may take whose changes are sent along."),
    ]
}
