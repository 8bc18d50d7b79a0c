/// The ID of one application's data space, for example `iCloud.com.example.Art`.
public struct ContainerID: ValidatedIdentifier {
    /// The rule for valid identifiers, for error messages.
    public static let rule =
        "a container identifier: 1 to 255 letters, digits, dots, hyphens and underscores, "
        + "beginning with a letter or digit"

    /// The name as it appears in URLs and in the `cid` of a push.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard (1...Limits.maximumNameBytes).contains(rawValue.utf8.count),
            rawValue.utf8.first?.isLetterOrDigit == true,
            rawValue.utf8.allSatisfy({ $0.isLetterOrDigit || ".-_".utf8.contains($0) })
        else { return nil }
        self.rawValue = rawValue
    }
}

/// The name of a change source within its container and environment.
public struct SourceName: ValidatedIdentifier {
    /// The rule for valid names, for error messages.
    public static let rule = "a source name: 1 to 64 letters, digits, hyphens and underscores"

    /// The name as it appears in the webhook's URL.
    public let rawValue: String

    /// Creates a name, or returns `nil` if `rawValue` breaks the `rule`.
    public init?(rawValue: String) {
        guard (1...64).contains(rawValue.utf8.count),
            rawValue.utf8.allSatisfy({ $0.isLetterOrDigit || "-_".utf8.contains($0) })
        else { return nil }
        self.rawValue = rawValue
    }
}

extension UInt8 {
    /// Whether this byte is an ASCII letter or digit.
    var isLetterOrDigit: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
