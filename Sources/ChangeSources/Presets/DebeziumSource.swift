import RelayModel

/// The `source` of a Debezium event: the table, the time and the position of the change.
struct DebeziumSource {
    private let reader: JSONReader

    init(_ reader: JSONReader) {
        self.reader = reader
    }

    /// The members that are read, except times.
    static let members = [
        "connector", "name", "db", "schema", "table", "collection", "snapshot", "lsn", "txId",
        "file", "pos", "row", "gtid", "sequence", "resume_token", "ord", "rs", "change_lsn",
        "event_serial_no", "commit_lsn", "scn", "commit_scn", "rs_id", "ssn", "row_id",
    ]

    private var connector: String { text("connector") ?? "" }

    /// Whether the row after an update is looked up later, as MongoDB's documents are, instead of
    /// coming from the log.
    var looksUpdatesUp: Bool { connector == "mongodb" }

    private func text(_ name: String) -> String? {
        reader.anyText(name).flatMap { $0.isEmpty ? nil : $0 }
    }

    private func integer(_ name: String) -> Int64? {
        switch reader.value(name) {
        case .integer(let number)?: number
        case .string(let text)?: Int64(text)
        default: nil
        }
    }

    /// The table, or the collection.
    var table: ReportedTable? {
        guard let name = text("table") ?? text("collection") else { return nil }
        return ReportedTable(database: text("db"), schema: text("schema"), name: name)
    }

    /// When the change was committed.
    var committedAt: Timestamp? {
        if let count = integer("ts_ns") {
            return Timestamp(count: count, perSecond: 1_000_000_000).plausible
        }
        if let count = integer("ts_us") {
            return Timestamp(count: count, perSecond: 1_000_000).plausible
        }
        return integer("ts_ms").flatMap { Timestamp(milliseconds: $0).plausible }
    }

    /// Whether the row comes from the initial snapshot.
    ///
    /// Rows of an incremental snapshot have the operation `r`.
    var isInitialSnapshot: Bool {
        let word = text("snapshot") ?? "false"
        return word != "false" && word != "incremental"
    }

    /// The version that orders the changes of one record.
    ///
    /// PostgreSQL's log positions do so, because the lock on a row is held until commit. The file
    /// numbers of a binlog do not survive a failover, so MySQL's changes are ordered by arrival.
    var version: Int64? {
        connector == "postgresql" ? integer("lsn") : nil
    }

    /// The position of the event in the source's own log.
    var position: String? {
        let parts: [String]
        switch connector {
        case "postgresql": parts = named("lsn", and: "txId")
        case "mysql", "mariadb": parts = named("file", "pos", and: "row", "gtid")
        case "mongodb":
            let token = named("resume_token")
            parts = token.isEmpty ? named("ts_ms", "ord", and: "rs") : token
        case "sqlserver": parts = named("change_lsn", and: "event_serial_no", "commit_lsn")
        case "oracle": parts = named("scn", and: "commit_scn", "rs_id", "ssn", "row_id")
        default: parts = named("sequence")
        }
        guard !parts.isEmpty else { return nil }
        return (["\(connector)/\(text("name") ?? "")"] + parts).joined(separator: ";")
    }

    /// Returns `name=value` for every name; nothing if a required one is absent.
    private func named(_ required: String..., and optional: String...) -> [String] {
        let values = required.compactMap { name in text(name).map { "\(name)=\($0)" } }
        guard values.count == required.count else { return [] }
        return values + optional.compactMap { name in text(name).map { "\(name)=\($0)" } }
    }

    private func named(_ required: String...) -> [String] {
        let values = required.compactMap { name in text(name).map { "\(name)=\($0)" } }
        return values.count == required.count ? values : []
    }
}
