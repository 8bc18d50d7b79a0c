import RelayModel

/// The settings of console sessions: how long they last, and how many there may be.
package struct ConsoleSettings: Sendable, Hashable {
    /// Whether the console is served and sessions can begin.
    package var isEnabled = true
    /// How long a session lasts without a call.
    package var idle = Duration.seconds(3600)
    /// How long a session lasts at most.
    package var whole = Duration.seconds(12 * 3600)
    /// The maximum number of sessions of one token; a further one ends the one that was idle
    /// longest.
    var ofOneToken = 16
    /// The maximum number of sessions of all tokens; each takes a few hundred bytes.
    var ofAll = 256
    /// How long a sign-in code is valid; it can be used once.
    var codeLife = Duration.seconds(600)
    /// The maximum number of unused codes; a further one ends the oldest code of the token that has
    /// most.
    var codes = 32

    package init() {}
}

/// A console session that was begun with a token of the administrative surface.
struct ConsoleSession: Sendable, Hashable {
    /// The verifier of the token; the token's rights are looked up at each call.
    let token: String
    let startedAt: Timestamp
    /// The time of the last call.
    var usedAt: Timestamp

    /// Returns when the session ends even if calls are made.
    func end(_ settings: ConsoleSettings) -> Timestamp {
        startedAt.advanced(by: settings.whole)
    }

    /// Returns when the session ends if no further call is made.
    func idleEnd(_ settings: ConsoleSettings) -> Timestamp {
        min(usedAt.advanced(by: settings.idle), end(settings))
    }
}

/// The table of console sessions and codes: pure decisions over names that cannot be guessed.
///
/// It stores only digests of secrets. A restart empties it.
struct ConsoleSessionTable: Sendable {
    /// A code that can begin one session with a token.
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

    /// Begins a session with a token; `nil` if all tokens together have too many.
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

    /// Returns the session of this name and renews it for a call at `now`; `nil` if it has ended or
    /// never existed.
    mutating func use(_ name: String, at now: Timestamp) -> ConsoleSession? {
        guard var session = sessions[name] else { return nil }
        guard now < session.idleEnd(settings) else {
            sessions[name] = nil
            return nil
        }
        // A clock that was set back must not shorten the time that is left.
        session.usedAt = max(session.usedAt, now)
        sessions[name] = session
        return session
    }

    /// Ends a session; returns whether there was one.
    mutating func end(_ name: String) -> Bool {
        sessions.removeValue(forKey: name) != nil
    }

    /// Ends all sessions of a token, and deletes its codes.
    mutating func endAll(with token: String) {
        sessions = sessions.filter { $0.value.token != token }
        codes = codes.filter { $0.value.token != token }
    }

    /// Stores a code for a token; returns until when it is valid.
    mutating func keep(code name: String, for token: String, at now: Timestamp) -> Timestamp {
        codes = codes.filter { now < $0.value.endsAt }
        if codes.count >= settings.codes { dropCode() }
        lastCode += 1
        let endsAt = now.advanced(by: settings.codeLife)
        codes[name] = Code(token: token, endsAt: endsAt, number: lastCode)
        return endsAt
    }

    /// Deletes the oldest code of the token that has most, so that one token cannot displace
    /// another's codes.
    private mutating func dropCode() {
        var counts: [String: Int] = [:]
        for code in codes.values { counts[code.token, default: 0] += 1 }
        let most = counts.values.max()
        let oldest = codes.filter { counts[$0.value.token] == most }
            .min { $0.value.number < $1.value.number }
        if let oldest { codes[oldest.key] = nil }
    }

    /// Returns the token for which a code was stored, and deletes the code.
    mutating func redeem(code name: String, at now: Timestamp) -> String? {
        guard let code = codes.removeValue(forKey: name), now < code.endsAt else { return nil }
        return code.token
    }

    private mutating func forgetEnded(at now: Timestamp) {
        sessions = sessions.filter { now < $0.value.idleEnd(settings) }
    }
}
