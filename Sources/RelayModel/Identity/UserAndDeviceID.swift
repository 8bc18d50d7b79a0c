/// The ID of a user of a container, CloudKit's `userRecordName`.
public struct UserID: ValidatedIdentifier {
    /// The rule for valid IDs, for error messages.
    public static let rule = "a user record name of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the credential states it.
    public let rawValue: String

    /// Creates an ID, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}

/// The ID of one installation of an application on one device of a user.
public struct DeviceID: ValidatedIdentifier {
    /// The rule for valid IDs, for error messages.
    public static let rule = "a device ID of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the client or the relay chose it.
    public let rawValue: String

    /// Creates an ID, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}

extension DeviceID {
    private static let furtherMark = "~token-"
    private static let furtherDigits = 8

    /// Returns the ID of a further device of the same client, one with another token.
    ///
    /// `digits` are the first characters of a digest of the token, at least eight. Returns `nil` if
    /// the client's name is too long for the suffix.
    public func further(_ digits: String) -> DeviceID? {
        DeviceID(rawValue: rawValue + Self.furtherMark + digits.prefix(Self.furtherDigits))
    }

    /// Returns whether both IDs are devices of one client: the same device, or further ones of it.
    public func isOfSameClient(as other: DeviceID) -> Bool {
        self == other || client.utf8.elementsEqual(other.client.utf8)
    }

    /// The name that the client gave itself, without the suffix of a further device.
    package var client: Substring {
        let utf8 = rawValue.utf8
        let tail = Self.furtherMark.utf8.count + Self.furtherDigits
        guard utf8.count > tail else { return rawValue[...] }
        let mark = utf8.index(utf8.endIndex, offsetBy: -tail)
        return utf8[mark...].starts(with: Self.furtherMark.utf8)
            ? rawValue[..<mark] : rawValue[...]
    }
}
