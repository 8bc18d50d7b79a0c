import RelayModel
import Storage

/// The noted versions of records, fetched from the engine together.
///
/// No other commit writes meanwhile, so the copy is exact if every version that the commit itself
/// notes is added to it.
struct KnownVersions {
    /// The noted version of a record, with its source.
    private struct Noted {
        let source: [UInt8]
        let version: Int64?
    }

    /// The versions by the name of the record; `nil` for a record without a row.
    private var versions: [RowName: Noted?] = [:]

    /// Looks up the noted versions of those of the named records that were not looked up before,
    /// with `statement`, whose arguments are their names.
    mutating func lookUp(_ names: [RowName], by statement: Statement) throws {
        var asked: Set<RowName> = []
        let new = names.filter { versions[$0] == nil && asked.insert($0).inserted }
        guard !new.isEmpty else { return }
        let rows = try Row.fetchFirsts(statement, arguments: new.map(\.arguments))
        for (name, row) in zip(new, rows) {
            versions[name] = .some(
                row.map {
                    let source: String = $0["source"]
                    return Noted(source: Array(source.utf8), version: $0["version"])
                })
        }
    }

    /// Returns whether a later version than `version` was noted for a record that was looked up, by
    /// the rule of ``AppendStatement/noteVersion``.
    func isStale(
        _ version: Int64, of name: RowName, from source: SourceName
    ) -> Bool {
        guard let noted = versions[name] else {
            preconditionFailure("the version was not looked up")
        }
        guard let noted, let last = noted.version else { return false }
        return noted.source == Array(source.rawValue.utf8) && last > version
    }

    /// Records a version as the noted one of a record.
    mutating func note(_ version: Int64?, of name: RowName, from source: SourceName) {
        versions[name] = .some(Noted(source: Array(source.rawValue.utf8), version: version))
    }
}
