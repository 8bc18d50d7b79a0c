/// Names one application's data space, for example `iCloud.com.example.Art`.
public struct ContainerID: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule =
        "a container identifier: 1 to 255 letters, digits, dots, hyphens and underscores, "
        + "beginning with a letter or digit"

    /// The name as it stands in URLs and in the `cid` of a push.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
    public init?(rawValue: String) {
        guard (1...Limits.maximumNameBytes).contains(rawValue.utf8.count),
            rawValue.utf8.first?.isLetterOrDigit == true,
            rawValue.utf8.allSatisfy({ $0.isLetterOrDigit || ".-_".utf8.contains($0) })
        else { return nil }
        self.rawValue = rawValue
    }
}

/// Names a change source within its container and environment.
public struct SourceName: ValidatedIdentifier {
    /// What is allowed, for error messages.
    public static let rule = "a source name: 1 to 64 letters, digits, hyphens and underscores"

    /// The name as it stands in the webhook's URL.
    public let rawValue: String

    /// Creates an identifier, or returns `nil` if `rawValue` is not one.
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
