import RelayModel
import Storage

/// The noted versions of the records of one request, fetched from the engine at once.
///
/// No other request writes meanwhile, so the copy is exact if every version that the request itself
/// notes is added to it.
struct KnownVersions {
    /// The identity of a record, compared byte by byte as the engine does.
    private struct Record: Hashable {
        let type: RecordType
        let address: RecordAddress

        init(_ change: RecordChange) {
            type = change.recordType
            address = RecordAddress(
                change.recordID, database: change.database, owner: change.owner)
        }
    }

    /// The noted version of a record, with its source.
    private struct Noted {
        let source: [UInt8]
        let version: Int64?
    }

    private var versions: [Record: Noted] = [:]

    /// Looks up the noted versions of the records of `changes` with `statement`, whose arguments
    /// are their `names`.
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

    /// Returns whether a later version than that of `change` was noted for its record, by the rule
    /// of ``AppendStatement/noteVersion``.
    func isStale(_ change: RecordChange, of source: SourceName) -> Bool {
        guard let version = change.version, let noted = versions[Record(change)],
            let last = noted.version
        else { return false }
        return noted.source == Array(source.rawValue.utf8) && last > version
    }

    /// Records the version of `change` as the noted one.
    mutating func note(_ change: RecordChange, of source: SourceName) {
        versions[Record(change)] = Noted(
            source: Array(source.rawValue.utf8), version: change.version)
    }
}
