import RelayModel

/// The latest revocations.
///
/// A client that is just being admitted is not among the connected ones when a revocation ends
/// these. It was checked before the revocation, so it has to be checked against these again.
struct LiveRevocations: Sendable {
    /// The minimum number of remembered revocations.
    private static let kept = 1024

    /// The number of revocations so far.
    private(set) var count: UInt64 = 0
    /// The latest revocations, in order.
    private var recent: [Revocation] = []

    mutating func note(_ revocation: Revocation) {
        // A new schema is checked for each query by itself.
        if case .schema = revocation { return }
        count += 1
        recent.append(revocation)
        if recent.count > 2 * Self.kept { recent.removeFirst(Self.kept) }
    }

    /// Returns the end of a client that was admitted when there were `mark` revocations; `nil` if
    /// it may stay.
    func end(of identity: LiveIdentity, since mark: UInt64) -> LiveEnd? {
        let news = count - min(mark, count)
        guard news <= UInt64(recent.count) else {
            return LiveEnd(
                .notNow,
                APIError(.tryAgainLater, "many credentials are being revoked", retryAfter: 1))
        }
        return recent.suffix(Int(news)).first { $0.concerns(identity) }?.end
    }
}
