import RelayModel

/// What was revoked last.
///
/// Who is being let in while that happens is not found among those who are in: whether it may be
/// was asked before.
struct LiveRevocations: Sendable {
    /// How many are remembered, at least.
    private static let kept = 1024

    /// How many there were.
    private(set) var count: UInt64 = 0
    /// The last ones, in order.
    private var recent: [Revocation] = []

    mutating func note(_ revocation: Revocation) {
        // Under another schema queries are judged by themselves.
        if case .schema = revocation { return }
        count += 1
        recent.append(revocation)
        if recent.count > 2 * Self.kept { recent.removeFirst(Self.kept) }
    }

    /// What ends one who was found good when there had been `mark` of them; `nil` for nothing.
    func end(of identity: LiveIdentity, since mark: UInt64) -> LiveEnd? {
        let news = count - min(mark, count)
        guard news <= UInt64(recent.count) else {
            return LiveEnd(
                .notNow, APIError(.tryAgainLater, "much is being revoked", retryAfter: 1))
        }
        return recent.suffix(Int(news)).first { $0.concerns(identity) }?.end
    }
}
