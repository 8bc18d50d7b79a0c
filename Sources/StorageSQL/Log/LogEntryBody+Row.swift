import RelayModel
import Storage

extension LogEntryBody {
    /// Reads the body of an entry from its row.
    ///
    /// - Throws: ``Storage/StorageError/damaged(path:reason:)``, or `JSONContractError`.
    init(_ row: StoredRow, container: ContainerKey) throws {
        let kind = try row.require("kind", Kind(rawValue: row.row["kind"]))
        let json = try row.json("body")
        guard kind == .change else {
            try self.init(edit: kind, storedForm: json, container: container)
            return
        }
        self = .change(
            try RecordChange(storedForm: json), source: try row.identifier("source"),
            isStale: row.row["isStale"])
    }
}
