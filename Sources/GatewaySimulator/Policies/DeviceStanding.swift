#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What the gateway knows about a device token.
public enum DeviceStanding: Sendable, Hashable {
    /// The token is valid for these topics; `nil` for any.
    case registered(topics: Set<String>?)
    /// The application was removed from the device at that moment: 410 `Unregistered`.
    case unregistered(since: Date)
    /// The token expired at that moment: 410 `ExpiredToken`.
    case expired(since: Date)
    /// The token belongs to the other environment: 400 `BadDeviceToken`, as for a malformed token.
    case otherEnvironment
}

/// What happens to pushes for device tokens that the gateway does not know.
public enum UnknownDevicePolicy: String, Sendable, Hashable, CaseIterable {
    /// They count as valid for any topic.
    case accepted
    /// 400 `BadDeviceToken`.
    case refused
}
