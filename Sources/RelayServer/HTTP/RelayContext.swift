package import Hummingbird
package import Logging
import NIOCore

/// What Hummingbird carries along with a request; also made without a connection.
package struct RelayContext: RequestContext {
    /// Hummingbird's part.
    package var coreContext: CoreRequestContextStorage
    /// Whether there is a client at the other end of a connection, who may go.
    var isConnected: Bool { channel != nil }
    /// The connection.
    let channel: (any Channel)?
    /// The other end's address, and ours; what another relay says of a call that it hands on.
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
