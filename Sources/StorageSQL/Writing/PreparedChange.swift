import RelayModel
import Storage

/// A change with its text for the log.
struct PreparedChange: Sendable {
    let change: RecordChange
    let key: DedupeKey?
    let body: String

    /// Prepares a change.
    ///
    /// - Throws: `JSONContractError` if the log could not read the change back.
    init(_ toAppend: ChangeToAppend) throws(JSONContractError) {
        change = toAppend.change
        key = toAppend.key
        if let text = toAppend.text {
            body = text
        } else {
            body = try change.storedText()
        }
    }
}
