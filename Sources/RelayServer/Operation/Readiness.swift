/// Whether the relay can serve.
package enum Readiness: Sendable, Hashable {
    /// It can.
    case ready
    /// It cannot, for these reasons by part.
    case notReady([String: String])
}
