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

/// Makes the listeners of a relay, which share their bounds of files and connections.
struct ListenerMaker: Sendable {
    /// Makes what stands in the way of a connection's requests, between HTTP and the routes.
    typealias Handlers = @Sendable () -> [any RemovableChannelHandler]

    let configuration: RelayConfiguration
    let world: World
    let metrics: PrometheusMetrics
    let logger: Logger
    let ports: ServedPorts
    let certificate: ServedCertificate?
    let connections: OpenConnections
    /// What clients may have open.
    let clients: ConnectionCounts.Bounds

    /// Where `isForwarding`, each connection may need another one, to the owner of the store or
    /// from a relay that stands by.
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

    /// What lets connections into a listener.
    func limiter(
        _ name: String, _ bounds: ConnectionCounts.Bounds, pace: ConnectionPace.Bounds? = nil,
        proxies: TrustedProxies? = nil
    ) -> ConnectionLimiter {
        ConnectionLimiter(
            name, bounds, pace ?? configuration.listening.pace,
            proxies: proxies ?? configuration.listening.proxies,
            connections: connections, meter: ListenerMeter(listener: name, metrics),
            identifiers: RandomIdentifiers { [world] in world.randomBytes($0) }, logger: logger)
    }

    /// A listener at `place` whose requests `routes` answer.
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
                // One that was closed meanwhile, because the relay ends as it starts, has none.
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

    /// What the head of a request may have, with the fields behind its body.
    ///
    /// It is kept for each of very many connections, before anybody knows whose they are. Proxies
    /// let through as much unless told otherwise.
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

/// Closes a connection wholly once its client sends nothing more; for connections with TLS.
///
/// Of one that may be closed by halves, TLS waits for 5 s at its end for a word that it has heard
/// already, which would put off the relay's end as long.
private final class WholeClosing: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any
    typealias InboundOut = Any

    func handlerAdded(context: ChannelHandlerContext) {
        try? context.channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: false)
    }
}

/// A listener; it says which address it could not have.
///
/// At an orderly end it takes nothing new, and answers what has come in. A client that is in the
/// middle of a request then has the grace of the relay's end, and is cut off after it: nothing was
/// acknowledged to it.
private struct ServedListener<Listener: Service>: Service {
    let application: Listener
    let address: String
    let connections: OpenConnections

    func run() async throws {
        do {
            // The listener is not cancelled: a connection that comes in then ends the process by
            // a trap.
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

/// An address could not be had for a listener, for example because another process has it.
package struct AddressError: Error, Sendable, CustomStringConvertible {
    /// The address, and what the system says.
    package let description: String

    /// What is wrong with a host whose addresses nobody knows.
    package static func reason(ofUnknown host: String) -> String {
        host.hasPrefix("[")
            ? "an address of IPv6 stands here without brackets"
            : "the name of its host cannot be resolved"
    }
}
