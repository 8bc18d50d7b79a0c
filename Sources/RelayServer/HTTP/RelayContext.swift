package import Hummingbird
package import Logging
import NIOCore

/// The context that Hummingbird passes along with a request; it also exists without a connection.
package struct RelayContext: RequestContext {
    /// Hummingbird's part of the context.
    package var coreContext: CoreRequestContextStorage
    /// Whether the request came over a connection, whose client may go.
    var isConnected: Bool { channel != nil }
    /// The connection.
    let channel: (any Channel)?
    /// The addresses of the other end and of the relay; a forwarded call has those that the other
    /// relay states.
    var addresses: (peer: ClientAddress, own: ClientAddress?)?

    /// Creates the context of a request that came over a connection.
    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel.isActive ? source.channel : nil
        let own = ClientAddress(source.channel.localAddress)
        addresses = ClientAddress(source.channel.remoteAddress).map { ($0, own) }
    }

    /// Creates the context of a request that was made in this process.
    package init(logger: Logger) {
        coreContext = CoreRequestContextStorage(source: InProcess(logger: logger))
        channel = nil
        addresses = nil
    }

    private struct InProcess: RequestContextSource {
        let logger: Logger
    }
}
