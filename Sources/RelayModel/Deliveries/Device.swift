/// The gateway's address of one application on one device.
///
/// A token is a secret, so its description hides it.
public struct DeviceToken: ValidatedIdentifier {
    /// The rule for valid tokens, for error messages.
    public static let rule =
        "a device token: 32 to 512 hexadecimal digits, an even number"

    /// The digits, in lower case.
    public let rawValue: String

    /// Creates a token, or returns `nil` if `rawValue` is not an even number of hexadecimal digits
    /// within ``Limits/deviceTokenDigits``.
    public init?(rawValue: String) {
        let digits = rawValue.utf8
        guard Limits.deviceTokenDigits.contains(digits.count), digits.count.isMultiple(of: 2)
        else { return nil }
        // This checks bytes, because it runs for every device of every delivery.
        var hasCapitals = false
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): break
            case UInt8(ascii: "A")...UInt8(ascii: "F"): hasCapitals = true
            default: return nil
            }
        }
        self.rawValue = hasCapitals ? rawValue.lowercased() : rawValue
    }

    /// The first four digits and the length, so that nobody can send pushes with what a log
    /// contains.
    public var description: String { "\(rawValue.prefix(4))…(\(rawValue.utf8.count))" }
}

/// The gateway's environment that issued a device token.
public enum GatewayEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Tokens of builds under development (APNs: the sandbox host).
    case development
    /// Tokens of distributed builds.
    case production
}

/// The kind of gateway that reaches a device.
public enum GatewayKind: String, Sendable, Hashable, CaseIterable {
    /// Apple's push notification service, or another server with its provider API.
    case apns
    /// The web courier: the relay keeps notifications until the device fetches them.
    case courier
}

/// One installation of an application that a user has registered for pushes.
///
/// ```swift
/// let token = try #require(DeviceToken(rawValue: String(repeating: "0f", count: 32)))
/// let phone = Device(
///     id: try #require(DeviceID(rawValue: "alice-phone")), container: container, owner: alice,
///     gatewayEnvironment: .development, token: token, topic: "com.example.Art")
/// #expect("\(phone.token)" == "0f0f…(64)")
/// ```
public struct Device: Sendable, Hashable {
    /// The ID of the installation.
    public var id: DeviceID
    /// The container and environment that the device is registered with.
    public var container: ContainerKey
    /// The user who is signed in on the device.
    public var owner: UserID
    /// The kind of gateway that reaches the device.
    public var gateway: GatewayKind
    /// The gateway's environment that issued the token.
    public var gatewayEnvironment: GatewayEnvironment
    /// The gateway's address of the device.
    public var token: DeviceToken
    /// The application's topic (APNs: its bundle ID), if it is not the container's first topic.
    public var topic: String?
    /// When the device does not want to be disturbed.
    public var kindness = DeviceKindness()

    /// Creates a device, which is reached by APNs unless `gateway` says otherwise.
    public init(
        id: DeviceID, container: ContainerKey, owner: UserID, gateway: GatewayKind = .apns,
        gatewayEnvironment: GatewayEnvironment, token: DeviceToken, topic: String? = nil
    ) {
        self.id = id
        self.container = container
        self.owner = owner
        self.gateway = gateway
        self.gatewayEnvironment = gatewayEnvironment
        self.token = token
        self.topic = topic
    }
}
