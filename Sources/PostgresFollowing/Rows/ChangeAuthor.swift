import RelayModel

/// The author of changes, as a transaction declares it: `{"deviceID": …, "userRecordName": …}`.
struct ChangeAuthor: Sendable, Hashable {
    var deviceID: String?
    var userID: String?

    /// The maximum size of a declaration: two names of 255 bytes each, with space for escapes.
    private static let maximumBytes = 4096

    /// Decodes a declaration; `nil` if it names neither a device nor a user, or one that cannot be.
    init?(_ content: [UInt8]) {
        guard content.count <= Self.maximumBytes, let json = try? JSONValue(parsing: content),
            let reader = try? JSONReader(json)
        else { return nil }
        do {
            let device: DeviceID? = try Self.name("deviceID", in: reader)
            let user: UserID? = try Self.name("userRecordName", in: reader)
            (deviceID, userID) = (device?.rawValue, user?.rawValue)
        } catch {
            return nil
        }
        guard deviceID != nil || userID != nil else { return nil }
    }

    /// Returns the name in a member; an empty text is none.
    private static func name<Name: ValidatedIdentifier>(
        _ member: String, in reader: JSONReader
    ) throws(JSONContractError) -> Name? {
        try reader.value(member) == "" ? nil : reader.identifier(member)
    }
}
