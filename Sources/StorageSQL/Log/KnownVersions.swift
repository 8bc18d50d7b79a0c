import RelayModel
import Storage

/// What is noted of the versions of the records of one request, asked of the engine at once.
///
/// Nobody else writes meanwhile, so that it is exact as long as it hears what the request itself
/// notes.
struct KnownVersions {
    /// Names a record, byte by byte as the engine does.
    private struct Record: Hashable {
        let type: RecordType
        let address: RecordAddress

        init(_ change: RecordChange) {
            type = change.recordType
            address = RecordAddress(
                change.recordID, database: change.database, owner: change.owner)
        }
    }

    /// What is noted of a record.
    private struct Noted {
        let source: [UInt8]
        let version: Int64?
    }

    private var versions: [Record: Noted] = [:]

    /// Looks for what is noted of the records of `changes` by `statement`, whose arguments are
    /// their `names`.
    init(
        _ changes: [RecordChange], named names: [StatementArguments], by statement: Statement
    ) throws {
        for (change, row) in zip(changes, try Row.fetchFirsts(statement, arguments: names)) {
            guard let row else { continue }
            let source: String = row["source"]
            versions[Record(change)] = Noted(
                source: Array(source.utf8), version: row["version"])
        }
    }

    /// Whether a later version was noted of what `change` changes, by the rule of
    /// ``AppendStatement/noteVersion``.
    func isStale(_ change: RecordChange, of source: SourceName) -> Bool {
        guard let version = change.version, let noted = versions[Record(change)],
            let last = noted.version
        else { return false }
        return noted.source == Array(source.rawValue.utf8) && last > version
    }

    /// Hears that the version of `change` is the one that is noted.
    mutating func note(_ change: RecordChange, of source: SourceName) {
        versions[Record(change)] = Noted(
            source: Array(source.rawValue.utf8), version: change.version)
    }
}
