import Storage

extension ConfigurationKeys {
    /// The settings of queries of records.
    static let queries = [
        ConfigurationKey(
            "queries.readers", number: \.store.scanningReaders, 1...64,
            "The queries of records that read at the same time, in turns; each takes a processor."),
        ConfigurationKey(
            "queries.open", number: \.queries.places, 1...10_000,
            "The queries of records that are open at a time; beyond, 429 is answered."),
        ConfigurationKey(
            "queries.perContainer", number: \.queriesPerContainer, 1...10_000,
            "The same of one container, and of these half of one user or of all who are not "
                + "signed in."),
        ConfigurationKey(
            "queries.rehearsals", number: \.queries.rehearsals, 1...1000,
            "The rehearsals of subscriptions that run at a time, of each user one; beyond, 429 is "
                + "answered, but to a container of which none runs."),
        ConfigurationKey(
            "queries.records", number: \.queries.rows, 1...1_000_000_000,
            "The records that one query may look at before its page ends."),
        ConfigurationKey(
            "queries.seconds", time: \.queries.time, in: .seconds(1), 1...3600,
            "How long one query may take before its page ends."),
        ConfigurationKey(
            "queries.uploadSeconds", time: \.queries.uploadTime, in: .seconds(1), 1...3600,
            "How long one rehearsal by changes that are sent along may take."),
    ]
}
