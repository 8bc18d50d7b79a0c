extension ConfigurationKeys {
    /// The settings of queries of records.
    static let queries = [
        ConfigurationKey(
            "queries.readers", .integer(1...64), default: "1",
            "The queries of records that read at the same time, in turns; each takes a processor."),
        ConfigurationKey(
            "queries.open", .integer(1...10_000), default: "64",
            "The queries of records that are open at a time; beyond, 429 is answered."),
        ConfigurationKey(
            "queries.perContainer", .integer(1...10_000), default: "32",
            "The same of one container, and of these half of one user or of all who are not "
                + "signed in."),
        ConfigurationKey(
            "queries.records", .integer(1...1_000_000_000), default: "200000",
            "The records that one query may look at before its page ends."),
        ConfigurationKey(
            "queries.seconds", .integer(1...3600), default: "10",
            "How long one query may take before its page ends."),
    ]
}

extension QueryDesk.Settings {
    init(_ values: ConfigurationValues) {
        self.init()
        places = values.integer("queries.open")
        placesOfContainer = values.integer("queries.perContainer")
        rows = values.integer("queries.records")
        time = .seconds(values.integer("queries.seconds"))
    }
}
