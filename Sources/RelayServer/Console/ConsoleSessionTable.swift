import RelayModel

/// How long somebody stays signed in at the console, and how many may be.
package struct ConsoleSettings: Sendable, Hashable {
    /// Whether the console is served, and sessions begin.
    package var isEnabled = true
    /// How long a session lasts without a call.
    package var idle = Duration.seconds(3600)
    /// How long it lasts at most.
    package var whole = Duration.seconds(12 * 3600)
    /// The sessions of one token; a further one ends the one that was idle for longest.
    var ofOneToken = 16
    /// The sessions of all tokens: a few hundred bytes each.
    var ofAll = 256
    /// How long a code for signing in counts, once.
    var codeLife = Duration.seconds(600)
    /// The codes that wait; a further one ends the oldest of the token that has most.
    var codes = 32

    package init() {}
}

/// A time of being signed in with one token of the administrative surface.
struct ConsoleSession: Sendable, Hashable {
    /// The verifier of the token: what it may do is looked up at each call.
    let token: String
    let startedAt: Timestamp
    /// When the last call was made.
    var usedAt: Timestamp

    /// When it ends whatever is done.
    func end(_ settings: ConsoleSettings) -> Timestamp {
        startedAt.advanced(by: settings.whole)
    }

    /// When it ends if no call is made.
    func idleEnd(_ settings: ConsoleSettings) -> Timestamp {
        min(usedAt.advanced(by: settings.idle), end(settings))
    }
}

/// Who is signed in: pure decisions over names that nobody can guess.
///
/// It has no secrets, but their digests. A restart forgets all of it.
struct ConsoleSessionTable: Sendable {
    /// A right to begin one session with a token.
    private struct Code {
        let token: String
        let endsAt: Timestamp
        let number: UInt64
    }

    let settings: ConsoleSettings
    private var sessions: [String: ConsoleSession] = [:]
    private var codes: [String: Code] = [:]
    private var lastCode: UInt64 = 0

    init(_ settings: ConsoleSettings) {
        self.settings = settings
    }

    var count: Int { sessions.count }

    /// Begins a session with a token; `nil` if there are too many of all tokens.
    mutating func begin(
        _ name: String, with token: String, at now: Timestamp
    ) -> ConsoleSession? {
        forgetEnded(at: now)
        let own = sessions.filter { $0.value.token == token }
        if own.count >= settings.ofOneToken,
            let oldest = own.min(by: { $0.value.usedAt < $1.value.usedAt })
        {
            sessions[oldest.key] = nil
        }
        guard sessions.count < settings.ofAll else { return nil }
        let session = ConsoleSession(token: token, startedAt: now, usedAt: now)
        sessions[name] = session
        return session
    }

    /// The session of this name, which a call at `now` keeps; `nil` if it has ended, or never was.
    mutating func use(_ name: String, at now: Timestamp) -> ConsoleSession? {
        guard var session = sessions[name] else { return nil }
        guard now < session.idleEnd(settings) else {
            sessions[name] = nil
            return nil
        }
        // A clock that was set back takes nothing from the time that is left.
        session.usedAt = max(session.usedAt, now)
        sessions[name] = session
        return session
    }

    /// Ends a session; returns whether there was one.
    mutating func end(_ name: String) -> Bool {
        sessions.removeValue(forKey: name) != nil
    }

    /// Ends all sessions of a token, and what could begin one.
    mutating func endAll(with token: String) {
        sessions = sessions.filter { $0.value.token != token }
        codes = codes.filter { $0.value.token != token }
    }

    /// Keeps a code for a token; returns until when it counts.
    mutating func keep(code name: String, for token: String, at now: Timestamp) -> Timestamp {
        codes = codes.filter { now < $0.value.endsAt }
        if codes.count >= settings.codes { dropCode() }
        lastCode += 1
        let endsAt = now.advanced(by: settings.codeLife)
        codes[name] = Code(token: token, endsAt: endsAt, number: lastCode)
        return endsAt
    }

    /// Forgets the oldest code of the token that has most, so that nobody takes another's.
    private mutating func dropCode() {
        var counts: [String: Int] = [:]
        for code in codes.values { counts[code.token, default: 0] += 1 }
        let most = counts.values.max()
        let oldest = codes.filter { counts[$0.value.token] == most }
            .min { $0.value.number < $1.value.number }
        if let oldest { codes[oldest.key] = nil }
    }

    /// The token for which a code was kept; it counts once.
    mutating func redeem(code name: String, at now: Timestamp) -> String? {
        guard let code = codes.removeValue(forKey: name), now < code.endsAt else { return nil }
        return code.token
    }

    private mutating func forgetEnded(at now: Timestamp) {
        sessions = sessions.filter { now < $0.value.idleEnd(settings) }
    }
}
