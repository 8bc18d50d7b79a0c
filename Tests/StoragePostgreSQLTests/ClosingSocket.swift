import RelayTestKit

/// A loopback port that accepts every connection and closes it at once.
///
/// A proxy behaves so if its server is away.
final class ClosingSocket: Sendable {
    private let listener: LoopbackPort
    var port: Int { listener.number }

    /// Opens a free port.
    ///
    /// - Throws: ``LoopbackPort/NoneFree``.
    init() throws { listener = try LoopbackPort { _ in } }
}
