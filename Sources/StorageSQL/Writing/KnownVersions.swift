import RelayModel
import Storage

/// The noted versions of records, fetched from the engine together.
struct KnownVersions {
    /// The noted version of a record, with its source.
    private struct Noted {
        let source: [UInt8]
        let version: Int64?
    }

    private var versions = LookedUpRows<Noted>()

    /// Looks up the noted versions of those of the named records that were not looked up before,
    /// with `statement`, whose arguments are their names.
    mutating func lookUp(_ names: [RowName], by statement: Statement) throws {
        try versions.lookUp(names, by: statement) {
            let source: String = $0["source"]
            return Noted(source: Array(source.utf8), version: $0["version"])
        }
    }

    /// Returns whether a later version than `version` was noted for a record that was looked up, by
    /// the rule of ``AppendStatement/noteVersion``.
    func isStale(
        _ version: Int64, of name: RowName, from source: SourceName
    ) -> Bool {
        guard let noted = versions[name], let last = noted.version else { return false }
        return noted.source == Array(source.rawValue.utf8) && last > version
    }

    /// Records a version as the noted one of a record.
    mutating func note(_ version: Int64?, of name: RowName, from source: SourceName) {
        versions.note(Noted(source: Array(source.rawValue.utf8), version: version), of: name)
    }
}
