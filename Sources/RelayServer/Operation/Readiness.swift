/// Whether the relay can serve.
package enum Readiness: Sendable, Hashable {
    /// The relay can serve.
    case ready
    /// The relay cannot serve, for these reasons by part.
    case notReady([String: String])
}
