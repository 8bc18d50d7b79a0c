public import Logging

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// How many requests a connection serves before it is ended, as proxies do.
public struct RequestLimit: Sendable, Hashable {
    /// The last request that is processed.
    public var count: Int
    /// What follows the GOAWAY.
    public var ending: GoAway.Ending

    /// `ending` says what becomes of the connection after request number `count`.
    public init(count: Int, ending: GoAway.Ending = .drain) {
        self.count = count
        self.ending = ending
    }
}

/// How a simulated gateway behaves; the defaults are APNs' ways as far as they are known.
public struct SimulatedGatewayConfiguration: Sendable {
    // MARK: The address

    /// The address that is listened on.
    public var host = "127.0.0.1"
    /// The port; 0 for any that is free.
    public var port = 0
    /// Where the certificates come from.
    public var certificates = CertificateSource.fresh
    /// For how long new certificates are valid, at least an hour.
    public var certificateLifetime = Duration.seconds(30 * 86_400)
    /// The file that the certificate authority is written to as PEM, for the sender to read.
    public var caFile: String?

    // MARK: Providers and devices

    /// Whose provider tokens are believed.
    public var trust = ProviderTrust.anyKey
    /// The environment that the gateway stands for.
    public var environment = SimulatedEnvironment.production
    /// The topics that providers may push to; `nil` for all.
    ///
    /// Others get 400 `TopicDisallowed`.
    public var topics: Set<String>?
    /// What is known about device tokens, which are hexadecimal.
    public var devices: [String: DeviceStanding] = [:]
    /// What happens to pushes for other device tokens.
    public var unknownDevices = UnknownDevicePolicy.accepted
    /// Whether `apns-push-type` may be missing.
    public var missingPushType = MissingPushTypePolicy.accepted
    /// How old a provider token may be (APNs: an hour).
    public var maximumProviderTokenAge = Duration.seconds(3600)
    /// How much younger than its predecessor on the connection a new provider token must be
    /// (APNs: 20 minutes).
    public var minimumProviderTokenInterval = Duration.seconds(1200)
    /// How far ahead the sender's clock may be.
    public var clockTolerance = Duration.seconds(5)
    /// What an expired provider token does to its connection.
    public var afterExpiredToken = ExpiredTokenPolicy.wedgesConnection
    /// What a refusal with status 403 does to the stream limit.
    public var afterRejection = RejectionPolicy.keepsStreamLimit

    // MARK: Streams

    /// The stream limit until the first push with a valid provider token was answered.
    public var initialStreamLimit = 1
    /// The stream limit from then on.
    public var streamLimit = 1000
    /// What happens beyond a limit that the sender has acknowledged.
    public var overLimit = OverLimitPolicy.refuses
    /// What happens beyond a limit that the sender cannot know yet.
    public var overLimitBeforeAcknowledgement = OverLimitPolicy.refuses
    /// How long the gateway's SETTINGS, and all that must follow them, are held back.
    public var settingsDelay = Duration.zero
    /// The guard against rapid resets; `nil` for none.
    public var resetGuard: ResetGuard?
    /// How many requests each connection serves before a GOAWAY ends it; `nil` for no end.
    public var requestLimit: RequestLimit?

    // MARK: Answers and record

    /// What is answered instead of accepting.
    public var script = AnswerScript()
    /// Where the random numbers for delays begin.
    public var seed: UInt64 = 1
    /// How many pushes are kept; counters by `apns-id` live as long as their pushes.
    public var recordCapacity = 200_000
    /// Called for each push when its answer is decided, on the connection's thread: it must be
    /// quick.
    public var onPush: (@Sendable (ReceivedPush) -> Void)?
    /// The clock that provider tokens are judged by, and that stamps pushes.
    public var now: @Sendable () -> Date = MachineClock.now
    /// Gets the errors of connections, at level `info`; by default nobody does.
    public var logger = Logger(label: "belfry.gateway-simulator") { _ in
        SwiftLogNoOpLogHandler()
    }

    /// A gateway that accepts what APNs would, on a free port of 127.0.0.1.
    public init() {}
}
