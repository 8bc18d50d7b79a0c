/// The gateway's address of one application on one device.
///
/// It is a secret: its description hides it.
public struct DeviceToken: ValidatedIdentifier {
    /// What is allowed, for error messages.
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
        // By bytes: it is asked for every device of every delivery.
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

    /// The first four digits and the length, so that no log can be used to push.
    public var description: String { "\(rawValue.prefix(4))…(\(rawValue.utf8.count))" }
}

/// Which of the gateway's environments issued a device token.
public enum GatewayEnvironment: String, Sendable, Hashable, CaseIterable {
    /// Tokens of builds under development (APNs: the sandbox host).
    case development
    /// Tokens of distributed builds.
    case production
}

/// The kind of gateway by which a device is reached.
public enum GatewayKind: String, Sendable, Hashable, CaseIterable {
    /// Apple's push notification service, or anything that speaks its provider API.
    case apns
    /// The web courier: the relay keeps what is for the device until the device fetches it.
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
    /// The installation.
    public var id: DeviceID
    /// The container and environment it registered with.
    public var container: ContainerKey
    /// The user who is signed in on it.
    public var owner: UserID
    /// The kind of gateway that reaches it.
    public var gateway: GatewayKind
    /// Which of the gateway's environments issued the token.
    public var gatewayEnvironment: GatewayEnvironment
    /// The gateway's address of it.
    public var token: DeviceToken
    /// The application's topic (APNs: its bundle ID), where it is not the container's first.
    public var topic: String?
    /// When it does not want to be disturbed.
    public var kindness = DeviceKindness()

    /// Creates a device that is reached by APNs, unless `gateway` says otherwise.
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
