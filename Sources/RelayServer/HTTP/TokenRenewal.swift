import Synchronization

/// What finding out who is calling leaves behind: the user's token for the next request, which the
/// answer takes along, that the request's signature has been used, and that its user was counted.
package final class TokenRenewal: Sendable {
    private let renewed = Mutex<String?>(nil)
    private let used = Mutex(false)
    private let counted = Mutex(false)

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

    /// Notes that the request is counted as its user's; says whether it was not before.
    func countUser() -> Bool {
        counted.withLock { isCounted in
            defer { isCounted = true }
            return !isCounted
        }
    }
}
