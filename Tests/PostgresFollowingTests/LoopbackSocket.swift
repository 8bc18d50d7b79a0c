import Foundation
import RelayTestKit

/// A socket on a free loopback port.
final class LoopbackSocket: Sendable {
    private let descriptor: Int32
    let port: Int

    /// Binds the socket.
    ///
    /// - Throws: ``PostgresTestFailure`` if no port is free.
    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let descriptor = descriptor
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw PostgresTestFailure(description: "no port is free") }
    }

    deinit { close(descriptor) }

    /// Accepts connections from now on, and never sends anything.
    func listenSilently() { listen(descriptor, 16) }
}
