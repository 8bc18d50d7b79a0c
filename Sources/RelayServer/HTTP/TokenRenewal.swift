import Synchronization

/// What finding out who is calling leaves behind: the user's token for the next request, which the
/// answer takes along, and that the request's signature has been used.
package final class TokenRenewal: Sendable {
    private let renewed = Mutex<String?>(nil)
    private let used = Mutex(false)

    init() {}

    /// The token; `nil` while nobody has renewed it.
    var token: String? { renewed.withLock { $0 } }

    /// Leaves a token for the answer.
    func renew(_ token: String) {
        renewed.withLock { $0 = token }
    }

    /// Whether the request's signature was taken as used; it is asked for once a request.
    var isSignatureUsed: Bool { used.withLock { $0 } }

    /// Notes that the request's signature is used now.
    func noteSignature() {
        used.withLock { $0 = true }
    }
}
