import RelayModel

/// The author of changes, as a transaction declares it: `{"deviceID": …, "userRecordName": …}`.
struct ChangeAuthor: Sendable, Hashable {
    var deviceID: String?
    var userID: String?

    /// The maximum size of a declaration: two names of 255 bytes each, with space for escapes.
    private static let maximumBytes = 4096

    /// Decodes a declaration; `nil` if it names neither a device nor a user.
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
