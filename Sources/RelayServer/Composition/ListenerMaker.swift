import FoundationEssentials
import Glibc
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import NIOCore
import NIOSSL
import RelayModel
import ServiceLifecycle

/// Creates the listeners of a relay, which share their limits of files and connections.
struct ListenerMaker: Sendable {
    /// Creates the channel handlers between HTTP and the routes.
    typealias Handlers = @Sendable () -> [any RemovableChannelHandler]

    let configuration: RelayConfiguration
    let world: World
    let metrics: PrometheusMetrics
    let logger: Logger
    let ports: ServedPorts
    let certificate: ServedCertificate?
    let connections: OpenConnections
    /// The limits of client connections.
    let clients: ConnectionCounts.Bounds

    /// Creates the maker.
    ///
    /// If the relay forwards calls, each connection may need a second one, to the owner of the
    /// store or from a relay that stands by. So only half of the open files are available then.
    init(
        _ configuration: RelayConfiguration, world: World, metrics: PrometheusMetrics,
        logger: Logger, ports: ServedPorts, certificate: ServedCertificate?, isForwarding: Bool
    ) {
        self.configuration = configuration
        self.world = world
        self.metrics = metrics
        self.logger = logger
        self.ports = ports
        self.certificate = certificate
        connections = OpenConnections(
            grace: configuration.shutdownGrace, isUrgent: isForwarding, clock: world.clock,
            logger: logger)
        let files = OpenFiles.raised()
        let usable = isForwarding ? OpenFiles(limit: files.limit / 2) : files
        clients = configuration.listening.clients(
            usable, gateway: configuration.gateway.connections)
        logger.info(
            "listeners",
            metadata: [
                "files": .stringConvertible(files.limit),
                "connections": .stringConvertible(clients.connections),
                "perAddress": .stringConvertible(clients.perAddress),
            ])
        let shortage = configuration.listening.shortage(
            usable, gateway: configuration.gateway.connections)
        if let shortage { logger.warning("\(shortage)") }
    }

    /// Returns the limiter that admits connections to a listener.
    func limiter(
        _ name: String, _ bounds: ConnectionCounts.Bounds, pace: ConnectionPace.Bounds? = nil,
        proxies: TrustedProxies? = nil
    ) -> ConnectionLimiter {
        ConnectionLimiter(
            name, bounds, pace ?? configuration.listening.pace,
            answerBytes: configuration.listening.rates.bodyBytes,
            proxies: proxies ?? configuration.listening.proxies,
            connections: connections, meter: ListenerMeter(listener: name, metrics),
            identifiers: RandomIdentifiers { [world] in world.randomBytes($0) }, logger: logger)
    }

    /// Creates a listener at `place` whose requests `routes` answer.
    func listener(
        _ place: RelayConfiguration.Listener, _ limiter: ConnectionLimiter,
        _ routes: @escaping SwitchedResponder.Routes, _ handlers: @escaping Handlers,
        security: TLSConfiguration?
    ) throws -> any Service {
        let (logger, ports) = (logger, ports)
        let application = Application(
            responder: CallbackResponder(callback: routes),
            server: try Self.server(limiter, handlers, security),
            configuration: ApplicationConfiguration(
                address: .hostname(place.host, port: place.port), serverName: "belfry",
                backlog: ConnectionLimiter.backlog),
            onServerRunning: { channel in
                await limiter.stand(at: channel)
                // A channel has no port if it was already closed, because the relay ended during
                // its start.
                guard let port = channel.localAddress?.port else { return }
                ports.announce(port, of: limiter.name)
                logger.info(
                    "serving",
                    metadata: ["listener": "\(limiter.name)", "address": "\(place.host):\(port)"])
            }, logger: logger)
        return ServedListener(
            application: application, address: "\(place.host):\(place.port)",
            connections: limiter.connections)
    }

    /// The limits of a request's head, including the fields after its body.
    ///
    /// The decoder keeps a head in memory before the client is known, and there can be very many
    /// connections. By default nginx passes on heads of up to 32 KiB.
    private static let heads = HTTP1Channel.Configuration.DecoderConfiguration(
        maxHeaderFieldSize: 32 * 1024, maxHeaderListSize: 32 * 1024, maxHeaderFieldCount: 200)

    private static func server(
        _ limiter: ConnectionLimiter, _ handlers: @escaping Handlers, _ security: TLSConfiguration?
    ) throws -> HTTPServerBuilder {
        let http1 = HTTP1Channel.Configuration(
            additionalChannelHandlers: [limiter.watch(), ClientWatch(), WholeAnswers()]
                + handlers(), httpDecoderConfiguration: heads)
        guard let security else { return taking(http1) }
        let secured = HTTP1Channel.Configuration(
            additionalChannelHandlers: [
                WholeClosing(), limiter.watch(), ClientWatch(), WholeAnswers(),
            ] + handlers(), httpDecoderConfiguration: heads)
        return try .tls(taking(secured), tlsConfiguration: security)
    }

    private static func taking(_ configuration: HTTP1Channel.Configuration) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            TakenChannel(base: HTTP1Channel(responder: responder, configuration: configuration))
        }
    }
}

/// Disables half-closed connections, for listeners with TLS.
///
/// If a connection may be half-closed, TLS waits 5 s at its end for a message that it has already
/// received. This would delay the relay's shutdown by as long.
private final class WholeClosing: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any
    typealias InboundOut = Any

    func handlerAdded(context: ChannelHandlerContext) {
        try? context.channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: false)
    }
}

/// A listener that names its address in errors.
///
/// During a graceful shutdown it accepts nothing new, and answers the requests that have arrived. A
/// client in the middle of a request has the grace period, and is then disconnected; nothing was
/// acknowledged to it.
private struct ServedListener<Listener: Service>: Service {
    let application: Listener
    let address: String
    let connections: OpenConnections

    func run() async throws {
        do {
            // The listener must not be cancelled: a connection that arrives at that moment would
            // crash the process.
            try await withGracefulShutdownHandler {
                try await application.run()
            } onGracefulShutdown: {
                connections.beginGrace()
            }
        } catch let error as IOError {
            let reason = unsafe String(cString: strerror(error.errnoCode))
            throw AddressError(description: "\(address) cannot be served: \(reason)")
        } catch let error as SocketAddressError.UnknownHost {
            let reason = AddressError.reason(ofUnknown: error.host)
            throw AddressError(description: "\(address) cannot be served: \(reason)")
        }
    }
}

/// The error of a listener whose address is not available, for example because another process uses
/// it.
package struct AddressError: Error, Sendable, CustomStringConvertible {
    /// The address, and the reason that the system gives.
    package let description: String

    /// Returns the reason for a host that has no addresses.
    package static func reason(ofUnknown host: String) -> String {
        host.hasPrefix("[")
            ? "write an IPv6 address here without brackets"
            : "the name of its host cannot be resolved"
    }
}
