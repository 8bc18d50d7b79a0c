import Foundation

/// A listening port of the loopback interface that serves each connection on a thread of its own.
package final class LoopbackPort: Sendable {
    /// An error: no port could be bound.
    package struct NoneFree: Error {}

    /// The port number.
    package let number: Int
    private let descriptor: Int32

    /// Creates a port that calls `serve` with the descriptor of each connection, and closes it
    /// afterwards.
    package init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0
                    && getsockname(descriptor, address, &length) == 0
                    && listen(descriptor, 16) == 0
            }
        }
        self.descriptor = descriptor
        number = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw NoneFree() }
        Thread.detachNewThread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread {
                    serve(connection)
                    close(connection)
                }
            }
        }
    }

    /// Stops listening, which ends the thread that waits for connections.
    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }
}
