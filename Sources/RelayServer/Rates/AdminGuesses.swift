/// Decides how often a client may send a wrong administrative token: a pure decision.
///
/// An address may be wrong ten times, and all addresses together a hundred times. After that,
/// tokens are still compared, but in a line, four in a second. So guessing is slow however many
/// clients guess. An operator with the right token waits for some seconds at most. There is no wait
/// for an address that sent the right token within a day and was seldom wrong.
struct AdminGuesses: Sendable {
    /// The decision on a token.
    enum Verdict: Sendable, Hashable {
        /// It is compared at once.
        case now
        /// It is compared after this time.
        case later(Duration)
        /// The line is too long.
        case refused(retryAfter: Duration)
    }

    private static let ofOne = RateLimit(perSecond: 0.1, burst: 10)
    private static let ofAll = RateLimit(perSecond: 1, burst: 100)
    private static let step = Duration.milliseconds(250)
    /// The maximum wait in the line: clients give up after half a minute.
    private static let longest = Duration.seconds(16)
    private static let trust = Duration.seconds(86_400)
    private static let mostTrusted = 256

    private var wrong = RateTable<ClientAddress>(capacity: 4096)
    private var wrongOfAll = RateTable<Bool>(capacity: 1)
    private var trusted: [ClientAddress: Duration] = [:]
    private var turn = Duration.zero

    /// Decides on a token from `address`.
    mutating func judge(_ address: ClientAddress, at now: Duration) -> Verdict {
        var wrong = wrong
        var wrongOfAll = wrongOfAll
        let isSeldomWrong = wrong.take(of: address, Self.ofOne, at: now) == nil
        let areSeldomWrong = wrongOfAll.take(of: true, Self.ofAll, at: now) == nil
        let isTrusted = trusted[address].map { now - $0 < Self.trust } ?? false
        if isSeldomWrong, areSeldomWrong || isTrusted { return .now }
        let mine = max(turn, now)
        let wait = mine - now
        guard wait <= Self.longest else { return .refused(retryAfter: wait - Self.longest) }
        turn = mine + Self.step
        return .later(wait)
    }

    /// Notes that the token was wrong.
    mutating func wrong(_ address: ClientAddress, at now: Duration) {
        wrong.charge(1, to: address, Self.ofOne, at: now)
        wrongOfAll.charge(1, to: true, Self.ofAll, at: now)
    }

    /// Notes that the token was right.
    mutating func right(_ address: ClientAddress, at now: Duration) {
        wrong.fill(address)
        if trusted[address] == nil, trusted.count >= Self.mostTrusted,
            let oldest = trusted.min(by: { $0.value < $1.value })
        {
            trusted[oldest.key] = nil
        }
        trusted[address] = now
    }
}
