import Foundation
import RelayTestKit

/// A port of the loopback interface that takes every connection and closes it, as the proxy of a
/// server does that is away.
final class ClosingSocket: Sendable {
    private let descriptor: Int32
    let port: Int

    /// - Throws: ``PostgresTestFailure`` if no port is free.
    init() throws {
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
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw PostgresTestFailure(description: "no port is free") }
        Thread.detachNewThread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                close(connection)
            }
        }
    }

    /// Ends it: whoever waits for a connection is told.
    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }
}
