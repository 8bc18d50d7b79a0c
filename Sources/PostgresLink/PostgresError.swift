/// What a server, or the way to it, answered to a command.
package struct PostgresError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The five characters of SQLSTATE; empty where the connection failed.
    package let state: String
    /// What is wrong in the server's language, in one line.
    package let message: String
    /// Whether a connection is there, and nobody answers on it.
    package let isUnanswered: Bool

    package init(state: String, message: String) {
        self.init(state: state, message: message, isUnanswered: false)
    }

    /// The words for it, with the server's code.
    package var description: String { state.isEmpty ? message : "\(message) (\(state))" }

    /// Takes what libpq says of all servers that it tried, or of all addresses of one.
    ///
    /// What one of them said tells more than that another did not answer, as a former primary does
    /// not; that one only reads tells least, because the standbys of a cluster do.
    package init(connecting text: String) {
        // Hints stand below, and away from the edge.
        let all = text.split(whereSeparator: \.isNewline)
            .filter { $0.first?.isWhitespace == false }
            .map { PostgresError(state: "", message: Self.beginning(of: $0)) }
        self =
            all.first { $0.refusal != .unreachable } ?? all.first { $0.isCutOff }
            ?? all.first { !$0.isOfReader } ?? PostgresError(state: "", message: Self.line(text))
    }

    private init(state: String, message: String, isUnanswered: Bool) {
        self.state = state
        self.message = message
        self.isUnanswered = isUnanswered
    }

    /// The first line of a text, which has what is wrong; libpq's go on with hints.
    package static func line(_ text: String) -> String {
        let lines = text.split(whereSeparator: \.isNewline)
        return lines.first.map { beginning(of: $0) } ?? "no reason was given"
    }

    /// What is kept of a line: by scalars, because one letter may have any number of them.
    private static func beginning(of line: Substring) -> String {
        String(String.UnicodeScalarView(line.unicodeScalars.prefix(300)))
    }

    /// Nobody answered what was asked on a connection that is there.
    static func noAnswer(within patience: Duration) -> PostgresError {
        PostgresError(
            state: "", message: "no answer within \(patience.components.seconds) s",
            isUnanswered: true)
    }

    /// Why a server did not let somebody in.
    package enum Refusal: Sendable, Hashable {
        case password, database, full, unreachable
        /// The server does not prove who it is, or speaks no TLS where that is asked for.
        case untrusted
    }

    /// Whether somebody took the connection and ended it without a word.
    package var isCutOff: Bool {
        state.isEmpty
            && ["closed the connection unexpectedly", "Connection reset", "SYSCALL", "Broken pipe"]
                .contains { message.contains($0) }
    }

    /// What is looked at where nobody can be connected to.
    ///
    /// Of a server that takes the connection and stands still libpq says the same as of a network
    /// that swallows everything.
    package var whatToCheck: String {
        let isTimedOut = state.isEmpty && message.hasSuffix("timeout expired")
        return "check host, port and network"
            + (isTimedOut ? ", and whether the server stands still" : "")
    }

    /// Whether the server takes no writes, as a standby does; libpq says either, by what it was
    /// told to look for.
    package var isOfReader: Bool {
        state == "25006" || message.contains("read-only") || message.contains("hot standby mode")
    }

    /// Whether a server speaks no TLS, and that was asked for, as unless the URL says otherwise.
    package var speaksNoTLS: Bool { state.isEmpty && message.contains("SSL was required") }

    /// What the server says where it does not let a role in, or wants another proof of it.
    private static let refusesRole = [
        "authentication failed", "no password supplied", "no pg_hba.conf entry",
        "pg_hba.conf rejects", "is not permitted to log in", "permission denied for database",
        "requires a valid client certificate",
    ]

    /// What a connection that failed failed of.
    ///
    /// libpq gives no SQLSTATE of it, so that the words must tell; in a language that is not known
    /// here it is ``Refusal/unreachable``, and the server's own words say more.
    package var refusal: Refusal {
        if Self.refusesRole.contains(where: message.contains) { return .password }
        if message.contains("does not exist") {
            if message.contains("role \"") { return .password }
            if message.contains("database \"") { return .database }
        }
        if message.contains("certificate") || speaksNoTLS { return .untrusted }
        if message.contains("too many") || message.contains("remaining connection slots")
            || message.contains("max_wal_senders")
        {
            return .full
        }
        return .unreachable
    }
}
