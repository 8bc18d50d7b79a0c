import CPlatform

/// A connected socket that another owner, such as a channel, opened and will close.
///
/// The caller makes sure that the owner has not closed it, because the system gives the number of a
/// closed socket to the next one.
package struct SocketHandle: Sendable {
    private let number: CInt

    /// Creates the handle of a file descriptor.
    package init(_ number: CInt) { self.number = number }

    /// Sends what the socket takes at once, without waiting.
    ///
    /// - Returns: The number of bytes sent. It is 0 if the socket takes none now, and if the
    ///   connection has failed, which the owner's next write finds out.
    package func send(_ bytes: RawSpan) -> Int {
        unsafe bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return 0 }
            return unsafe max(0, belfry_send(number, start, UInt(bytes.count)))
        }
    }
}
