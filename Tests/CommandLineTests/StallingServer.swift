import Foundation

/// A port of the loopback interface that answers with the head of an answer, and with nothing more.
final class StallingServer: Sendable {
    /// No port is free.
    struct NoPort: Error {}

    private let descriptor: Int32
    let port: Int

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
        guard isBound else { throw NoPort() }
        Thread.detachNewThread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread { StallingServer.serve(connection) }
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }

    /// Answers what comes first, and keeps the connection until the other end closes it.
    private static func serve(_ connection: Int32) {
        let count = 65_536
        var bytes = [UInt8](repeating: 0, count: count)
        let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".utf8)
        if recv(connection, &bytes, count, 0) > 0 {
            _ = send(connection, head, head.count, Int32(MSG_NOSIGNAL))
            while recv(connection, &bytes, count, 0) > 0 {}
        }
        close(connection)
    }
}
