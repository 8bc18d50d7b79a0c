import RelayModel
import Storage

/// A change with the text that the log keeps of it.
struct PreparedChange: Sendable {
    let change: RecordChange
    let key: DedupeKey?
    let body: String

    /// - Throws: `JSONContractError` if the log could not read the change again.
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
