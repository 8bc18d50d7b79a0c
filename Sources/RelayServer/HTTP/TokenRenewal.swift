import Synchronization

/// The user's token for the next request: whoever finds out who is calling leaves it here, and the
/// answer takes it along.
package final class TokenRenewal: Sendable {
    private let renewed = Mutex<String?>(nil)

    init() {}

    /// The token; `nil` while nobody has renewed it.
    var token: String? { renewed.withLock { $0 } }

    /// Leaves a token for the answer.
    func renew(_ token: String) {
        renewed.withLock { $0 = token }
    }
}
