public import Logging

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// How many requests a connection serves before a GOAWAY ends it, as proxies do.
public struct RequestLimit: Sendable, Hashable {
    /// The number of the last request that is processed.
    public var count: Int
    /// What happens to the connection after the GOAWAY.
    public var ending: GoAway.Ending

    /// Creates a limit of `count` requests.
    public init(count: Int, ending: GoAway.Ending = .drain) {
        self.count = count
        self.ending = ending
    }
}

/// The behaviour of a simulated gateway.
///
/// The defaults follow APNs as far as it is known.
public struct SimulatedGatewayConfiguration: Sendable {
    // MARK: The address

    /// The address to listen on.
    public var host = "127.0.0.1"
    /// The port to listen on; 0 for any free one.
    public var port = 0
    /// Where the certificates come from.
    public var certificates = CertificateSource.fresh
    /// How long new certificates are valid; at least an hour.
    public var certificateLifetime = Duration.seconds(30 * 86_400)
    /// The file to which the certificate authority is written as PEM, for the sender to trust.
    public var caFile: String?

    // MARK: Providers and devices

    /// The providers whose tokens are accepted.
    public var trust = ProviderTrust.anyKey
    /// The environment that the gateway serves.
    public var environment = SimulatedEnvironment.production
    /// The topics that providers may push to; `nil` for all.
    ///
    /// Others get 400 `TopicDisallowed`.
    public var topics: Set<String>?
    /// The gateway's knowledge of device tokens, by token in hexadecimal digits.
    public var devices: [String: DeviceStanding] = [:]
    /// What happens to pushes for other device tokens.
    public var unknownDevices = UnknownDevicePolicy.accepted
    /// What happens to pushes without `apns-push-type`.
    public var missingPushType = MissingPushTypePolicy.accepted
    /// The maximum age of a provider token (APNs: an hour).
    public var maximumProviderTokenAge = Duration.seconds(3600)
    /// The minimum time between the issue of a new provider token and that of its predecessor on
    /// the connection (APNs: 20 minutes).
    public var minimumProviderTokenInterval = Duration.seconds(1200)
    /// How far ahead the sender's clock may be.
    public var clockTolerance = Duration.seconds(5)
    /// What an expired provider token does to its connection.
    public var afterExpiredToken = ExpiredTokenPolicy.wedgesConnection
    /// What a refusal with status 403 does to the stream limit.
    public var afterRejection = RejectionPolicy.keepsStreamLimit

    // MARK: Streams

    /// The stream limit until the first push with a valid provider token is answered.
    public var initialStreamLimit = 1
    /// The stream limit after that.
    public var streamLimit = 1000
    /// What happens to streams beyond a limit that the sender has acknowledged.
    public var overLimit = OverLimitPolicy.refuses
    /// What happens to streams beyond a limit that the sender has not acknowledged yet.
    public var overLimitBeforeAcknowledgement = OverLimitPolicy.refuses
    /// How long the gateway's SETTINGS, and everything after them, are held back.
    public var settingsDelay = Duration.zero
    /// The guard against rapid resets; `nil` for none.
    public var resetGuard: ResetGuard?
    /// How many requests each connection serves before a GOAWAY ends it; `nil` for no limit.
    public var requestLimit: RequestLimit?

    // MARK: Answers and record

    /// The answers that are given instead of accepting.
    public var script = AnswerScript()
    /// The seed of the random numbers for delays.
    public var seed: UInt64 = 1
    /// The maximum number of pushes to keep.
    ///
    /// Counters by `apns-id` last as long as their pushes.
    public var recordCapacity = 200_000
    /// Called for each push when its answer is decided, on the connection's thread.
    ///
    /// It must be quick.
    public var onPush: (@Sendable (ReceivedPush) -> Void)?
    /// The clock that stamps pushes and that the age of provider tokens is judged by.
    public var now: @Sendable () -> Date = MachineClock.now
    /// Receives the errors of connections at level `info`; by default, they are discarded.
    public var logger = Logger(label: "belfry.gateway-simulator") { _ in
        SwiftLogNoOpLogHandler()
    }

    /// Creates the configuration of a gateway that accepts what APNs would, on a free port of
    /// 127.0.0.1.
    public init() {}
}
