/// Names a user of a container, in CloudKit's words the `userRecordName`.
public struct UserID: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a user record name of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the credential states it.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}

/// Names one installation of an application on one device of a user.
public struct DeviceID: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a device ID of 1 to 255 UTF-8 bytes without control characters"

    /// The name as the client or the relay chose it.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard rawValue.isPlainName(upTo: Limits.maximumNameBytes) else { return nil }
        self.rawValue = rawValue
    }
}

extension DeviceID {
    private static let furtherMark = "~token-"
    private static let furtherDigits = 8

    /// The ID of a further device of the client that this ID names: one that has another token.
    ///
    /// `nil` if the client's name is too long to have anything after it. `digits` is taken from a
    /// digest of the token, at least eight of them.
    public func further(_ digits: String) -> DeviceID? {
        DeviceID(rawValue: rawValue + Self.furtherMark + digits.prefix(Self.furtherDigits))
    }

    /// Whether both are devices of one client: the same device, or further ones of it.
    public func isOfSameClient(as other: DeviceID) -> Bool {
        self == other || client.utf8.elementsEqual(other.client.utf8)
    }

    /// The name by which the client calls itself.
    package var client: Substring {
        let utf8 = rawValue.utf8
        let tail = Self.furtherMark.utf8.count + Self.furtherDigits
        guard utf8.count > tail else { return rawValue[...] }
        let mark = utf8.index(utf8.endIndex, offsetBy: -tail)
        return utf8[mark...].starts(with: Self.furtherMark.utf8)
            ? rawValue[..<mark] : rawValue[...]
    }
}
