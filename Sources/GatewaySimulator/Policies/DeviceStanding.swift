#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What the gateway knows about a device token.
public enum DeviceStanding: Sendable, Hashable {
    /// It is valid for these topics; `nil` for any.
    case registered(topics: Set<String>?)
    /// The application was removed from the device at that moment: 410 `Unregistered`.
    case unregistered(since: Date)
    /// The token expired at that moment: 410 `ExpiredToken`.
    case expired(since: Date)
    /// The token belongs to the other environment: 400 `BadDeviceToken`, as a malformed one.
    case otherEnvironment
}

/// What happens to pushes for device tokens that the gateway was told nothing about.
public enum UnknownDevicePolicy: String, Sendable, Hashable, CaseIterable {
    /// They are taken as valid for any topic.
    case accepted
    /// 400 `BadDeviceToken`.
    case refused
}
