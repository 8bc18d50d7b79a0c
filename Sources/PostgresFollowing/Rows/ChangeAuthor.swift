import RelayModel

/// Who makes changes, as a transaction says it: `{"deviceID": …, "userRecordName": …}`.
struct ChangeAuthor: Sendable, Hashable {
    var deviceID: String?
    var userID: String?

    /// Two names of 255 bytes each, with room for escapes.
    private static let maximumBytes = 4096

    /// Reads what a transaction says; `nil` if it names nobody.
    init?(_ content: [UInt8]) {
        guard content.count <= Self.maximumBytes,
            case .object(let object)? = try? JSONValue(parsing: content)
        else { return nil }
        func text(_ name: String) -> String? {
            if case .string(let text)? = object[name] { text } else { nil }
        }
        deviceID = text("deviceID")
        userID = text("userRecordName")
        guard deviceID != nil || userID != nil else { return nil }
    }
}
