import RelayTestKit

/// A port of the loopback interface that takes every connection and closes it, as the proxy of a
/// server does that is away.
final class ClosingSocket: Sendable {
    private let listener: LoopbackPort
    var port: Int { listener.number }

    /// - Throws: ``LoopbackPort/NoneFree``.
    init() throws { listener = try LoopbackPort { _ in } }
}
