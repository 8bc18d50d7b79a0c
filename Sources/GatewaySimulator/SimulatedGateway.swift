import NIOCore
import NIOHTTP2
import NIOPosix
import NIOSSL
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A push gateway on this machine that behaves as APNs does, and misbehaves on request.
///
/// It speaks HTTP/2 over TLS with its own certificates. It checks what APNs checks and answers with
/// APNs' statuses and reasons. It raises the stream limit only after the first push with a valid
/// provider token. It plays scripts of refusals, delays and faults, and records every push.
///
/// ```swift
/// let gateway = try await SimulatedGateway.start()
/// // … the sender pushes to port gateway.port and trusts gateway.caCertificatePEM …
/// let pushes = try await gateway.pushes(count: 2, within: .seconds(5))
/// #expect(pushes.map(\.isAnswered) == [true, true])
/// await gateway.stop()
/// ```
public final class SimulatedGateway: Sendable {
    /// The port that the gateway listens on.
    public let port: Int
    /// The certificate authority that a sender must trust, as PEM.
    public let caCertificatePEM: String

    private let listener: any Channel
    private let connections: OpenConnections
    /// The configuration of a gateway.
    public typealias Configuration = SimulatedGatewayConfiguration

    private let ledger: GatewayLedger
    private let judge: GatewayJudge

    private init(
        listener: any Channel, connections: OpenConnections, ledger: GatewayLedger,
        judge: GatewayJudge, caCertificatePEM: String
    ) {
        self.listener = listener
        self.connections = connections
        self.ledger = ledger
        self.judge = judge
        self.caCertificatePEM = caCertificatePEM
        port = listener.localAddress?.port ?? 0
    }

    /// Makes or loads certificates, writes the authority's certificate to `configuration.caFile`,
    /// and listens.
    ///
    /// - Throws: An error of the system if the address is taken or a file cannot be written.
    public static func start(
        _ configuration: Configuration = Configuration()
    ) async throws
        -> SimulatedGateway
    {
        // The real time, not the configuration's clock: senders judge certificates by their own
        // clock.
        let authority = try CertificateAuthority.load(
            from: configuration.certificates, host: configuration.host, now: MachineClock.now(),
            lifetime: configuration.certificateLifetime)
        let ledger = GatewayLedger(capacity: configuration.recordCapacity)
        let judge = GatewayJudge(configuration)
        let connections = OpenConnections()
        let tls = try serverContext(authority)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try setUp(channel, tls, configuration, ledger, judge)
                    connections.insert(channel)
                }
            }
            .bind(host: configuration.host, port: configuration.port).get()
        // Only now that the address is bound: if another gateway had it, its senders would trust
        // the certificate that the file holds already.
        do {
            if let caFile = configuration.caFile { try authority.writeCA(to: caFile) }
        } catch {
            try? await listener.close()
            throw error
        }
        return SimulatedGateway(
            listener: listener, connections: connections, ledger: ledger, judge: judge,
            caCertificatePEM: authority.caCertificatePEM)
    }

    /// Stops listening and closes all connections.
    ///
    /// Pushes without an answer do not get one.
    public func stop() async {
        try? await listener.close()
        await connections.closeAll()
    }

    /// Closes the open connections, as a restart of the gateway would, and continues to listen.
    public func closeConnections() async {
        await connections.closeAll()
    }
}

// MARK: - What it answers

extension SimulatedGateway {
    /// Replaces the script and plays `script` from its beginning.
    public func play(_ script: AnswerScript) {
        judge.replaceScript(script)
    }

    /// Sets the standing of a device token; `nil` forgets it.
    public func setStanding(_ standing: DeviceStanding?, of deviceToken: String) {
        judge.setStanding(standing, of: deviceToken)
    }
}

// MARK: - What it received

extension SimulatedGateway {
    /// The counts since the start.
    public var totals: GatewayTotals { ledger.totals }

    /// The last `recordCapacity` pushes, in the order of arrival.
    public var pushes: [ReceivedPush] { ledger.pushes }

    /// The last `recordCapacity` streams that were opened beyond the limit, in order.
    public var streamLimitViolations: [StreamLimitViolation] { ledger.violations }

    /// Returns the counts of an `apns-id`, as far as its pushes are kept.
    public func tally(of apnsID: String) -> PushTally {
        ledger.tally(of: apnsID)
    }

    /// Waits until `count` pushes have arrived since the start, and returns those of the first
    /// `count` that are still kept.
    ///
    /// - Throws: ``GatewayWaitTimeout`` after `limit`, or `CancellationError` if the task is
    ///   cancelled.
    public func pushes(count: Int, within limit: Duration) async throws -> [ReceivedPush] {
        _ = try await totals(within: limit) { $0.received >= count }
        return pushes.filter { $0.number <= count }
    }

    /// Waits until `condition` holds for the totals, and returns the totals for which it did.
    ///
    /// `condition` is called at each change, under a lock. It must be quick and must not call the
    /// gateway.
    ///
    /// - Throws: ``GatewayWaitTimeout`` after `limit`, or `CancellationError` if the task is
    ///   cancelled.
    public func totals(
        within limit: Duration, until condition: @escaping @Sendable (GatewayTotals) -> Bool
    ) async throws -> GatewayTotals {
        try await ledger.wait(within: limit, until: condition)
    }
}

extension SimulatedGateway {
    private static func serverContext(_ authority: CertificateAuthority) throws -> NIOSSLContext {
        let certificate = try NIOSSLCertificate(
            bytes: Array(authority.serverCertificatePEM.utf8), format: .pem)
        let key = try NIOSSLPrivateKey(bytes: Array(authority.serverKeyPEM.utf8), format: .pem)
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(certificate)], privateKey: .privateKey(key))
        tls.applicationProtocols = ["h2"]
        tls.minimumTLSVersion = .tlsv12
        // Senders need not answer close_notify: the socket closes after this time at the latest.
        tls.shutdownTimeout = .milliseconds(100)
        return try NIOSSLContext(configuration: tls)
    }

    private static func setUp(
        _ channel: any Channel, _ tls: NIOSSLContext, _ configuration: Configuration,
        _ ledger: GatewayLedger, _ judge: GatewayJudge
    ) throws {
        let tap = StreamLimitTap(delay: TimeAmount(configuration.settingsDelay))
        let connection = GatewayConnection(
            configuration: configuration, ledger: ledger, judge: judge, tap: tap)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(NIOSSLServerHandler(context: tls))
        try pipeline.addHandler(tap)
        try pipeline.addHandler(
            NIOHTTP2Handler(
                mode: .server, frameDelegate: tap,
                connectionConfiguration: connectionConfiguration(configuration),
                streamConfiguration: streamConfiguration(configuration)))
        try pipeline.addHandler(connection)
    }

    /// The settings that APNs has been observed to send.
    ///
    /// The library's own guards are relaxed, because they would end connections for what a test
    /// does on purpose.
    private static func connectionConfiguration(
        _ configuration: Configuration
    ) -> NIOHTTP2Handler.ConnectionConfiguration {
        var connection = NIOHTTP2Handler.ConnectionConfiguration()
        connection.initialSettings = [
            HTTP2Setting(parameter: .headerTableSize, value: 4096),
            StreamLimitTap.concealed(configuration.initialStreamLimit),
            HTTP2Setting(parameter: .initialWindowSize, value: GatewayConnection.windowBytes),
            HTTP2Setting(parameter: .maxFrameSize, value: 16_384),
            HTTP2Setting(parameter: .maxHeaderListSize, value: 8000),
        ]
        connection.maximumRecentlyResetStreams = 4096
        connection.maximumConnectionGlitches = .max
        connection.controlFrameRateLimit.maximumCount = 10_000
        return connection
    }

    private static func streamConfiguration(
        _ configuration: Configuration
    ) -> NIOHTTP2Handler.StreamConfiguration {
        var stream = NIOHTTP2Handler.StreamConfiguration()
        stream.streamErrorRateLimit.maximumCount = 10_000
        stream.streamErrorRateLimit.windowLength = .milliseconds(10)
        if let guarded = configuration.resetGuard {
            stream.streamResetFrameRateLimit.maximumCount = guarded.maximumCount
            stream.streamResetFrameRateLimit.windowLength = TimeAmount(guarded.window)
        } else {
            stream.streamResetFrameRateLimit.maximumCount = 10_000
            stream.streamResetFrameRateLimit.windowLength = .milliseconds(10)
        }
        return stream
    }
}

/// The open connections, kept so that they can be closed.
private final class OpenConnections: Sendable {
    private let channels = Mutex<[ObjectIdentifier: any Channel]>([:])

    /// Adds a connection, and removes it again when it closes.
    func insert(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        channels.withLock { $0[key] = channel }
        channel.closeFuture.whenComplete { _ in
            self.channels.withLock { _ = $0.removeValue(forKey: key) }
        }
    }

    /// Closes all connections and waits until they are closed.
    func closeAll() async {
        let open = channels.withLock { Array($0.values) }
        for channel in open { channel.close(promise: nil) }
        for channel in open { try? await channel.closeFuture.get() }
    }
}
