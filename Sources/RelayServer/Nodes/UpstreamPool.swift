import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOSSL
import StoragePostgreSQL

/// The idle connections of one event loop to the owner, which also opens new ones.
///
/// All of it happens on that loop.
final class UpstreamPool {
    /// The maximum number of idle connections; further ones are closed.
    private static let mostIdle = 64
    /// How long a connection may be idle: less than the owner keeps one without a request.
    private static let idleTime = TimeAmount.seconds(20)
    /// How long connecting may take, and as long the handshake after it.
    private static let connecting = TimeAmount.seconds(2)
    /// The TCP keepalive, in seconds and probes, which detects a machine that is gone within 11 s.
    private static let keepAlive = (idle: 5, interval: 2, count: 3)
    /// How long sent data may be unacknowledged, in milliseconds.
    private static let unanswered = 10_000

    private let loop: any EventLoop
    /// The maximum time without any incoming data while a connection is used.
    private let silence: TimeAmount
    private var idle: [(upstream: Upstream, since: NIODeadline)] = []
    private var isSweeping = false

    init(_ loop: any EventLoop, silence: TimeAmount) {
        self.loop = loop
        self.silence = silence
    }

    /// Returns a connection to an owner, either an idle one or a new one.
    func take(_ route: OwnerRoute) -> EventLoopFuture<NIOLoopBound<Upstream>> {
        while let upstream = idle.popLast()?.upstream {
            if upstream.isOpen, upstream.owner == route.owner {
                return loop.makeSucceededFuture(NIOLoopBound(upstream, eventLoop: loop))
            }
            upstream.close()
        }
        return connect(route)
    }

    /// Takes back a connection whose call was completely answered.
    func giveBack(_ upstream: Upstream) {
        upstream.use(by: nil)
        guard upstream.isOpen, idle.count < Self.mostIdle else { return upstream.close() }
        idle.append((upstream, loop.now))
        sweepLater()
    }

    private func sweepLater() {
        guard !isSweeping, !idle.isEmpty else { return }
        isSweeping = true
        let here = NIOLoopBound(self, eventLoop: loop)
        loop.scheduleTask(in: Self.idleTime) { here.value.sweep() }
    }

    /// Closes connections that were idle for long.
    private func sweep() {
        isSweeping = false
        let bound = loop.now - Self.idleTime
        let old = idle.filter { $0.since <= bound }
        idle.removeAll { $0.since <= bound }
        for entry in old { entry.upstream.close() }
        sweepLater()
    }

    private func connect(_ route: OwnerRoute) -> EventLoopFuture<NIOLoopBound<Upstream>> {
        let ready = loop.makePromise(of: Void.self)
        let (loop, silence) = (loop, silence)
        let bootstrap = ClientBootstrap(group: loop)
            .connectTimeout(Self.connecting)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .channelOption(.tcpOption(.tcp_keepidle), value: Self.keepAlive.idle)
            .channelOption(.tcpOption(.tcp_keepintvl), value: Self.keepAlive.interval)
            .channelOption(.tcpOption(.tcp_keepcnt), value: Self.keepAlive.count)
            .channelOption(.tcpOption(.tcp_user_timeout), value: Self.unanswered)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try Self.furnish(channel.pipeline.syncOperations, route, silence, ready)
                }
            }
        let limit = loop.scheduleTask(in: Self.connecting * 2) {
            ready.fail(ChannelError.connectTimeout(Self.connecting))
        }
        let connected = bootstrap.connect(host: route.address.host, port: route.address.port)
        connected.whenFailure { ready.fail($0) }
        return connected.flatMap { channel in
            ready.futureResult.flatMapThrowing {
                NIOLoopBound(
                    try channel.pipeline.syncOperations.handler(type: Upstream.self),
                    eventLoop: loop)
            }.flatMapErrorThrowing { error in
                channel.close(promise: nil)
                throw error
            }
        }.always { _ in limit.cancel() }
    }

    private static func furnish(
        _ pipeline: ChannelPipeline.SynchronousOperations, _ route: OwnerRoute,
        _ silence: TimeAmount, _ ready: EventLoopPromise<Void>
    ) throws {
        try pipeline.addHandler(
            try NIOSSLClientHandler(context: route.security, serverHostname: nil))
        try pipeline.addHandler(IdleStateHandler(readTimeout: silence))
        try pipeline.addHandler(HTTPRequestEncoder())
        try pipeline.addHandler(
            ByteToMessageHandler(
                HTTPResponseDecoder(
                    leftOverBytesStrategy: .forwardBytes, informationalResponseStrategy: .forward)))
        try pipeline.addHandler(HTTP1ToHTTPClientCodec())
        try pipeline.addHandler(Upstream(to: route.owner, ready: ready))
    }
}

extension NIOBSDSocket.Option {
    private static func number(_ value: CInt) -> NIOBSDSocket.Option {
        NIOBSDSocket.Option(rawValue: value)
    }

    // SwiftNIO has no names for these.
    static var tcp_keepidle: NIOBSDSocket.Option { number(CInt(TCP_KEEPIDLE)) }
    static var tcp_keepintvl: NIOBSDSocket.Option { number(CInt(TCP_KEEPINTVL)) }
    static var tcp_keepcnt: NIOBSDSocket.Option { number(CInt(TCP_KEEPCNT)) }
    static var tcp_user_timeout: NIOBSDSocket.Option { number(CInt(TCP_USER_TIMEOUT)) }
}
