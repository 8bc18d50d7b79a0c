/// An error of a server or of the connection to it.
package struct PostgresError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The SQLSTATE of five characters; empty if the connection failed.
    package let state: String
    /// The error message in the server's language, as one line.
    package let message: String
    /// Whether the connection exists, but the server does not answer on it.
    package let isUnanswered: Bool

    package init(state: String, message: String) {
        self.init(state: state, message: message, isUnanswered: false)
    }

    /// The message with the SQLSTATE.
    package var description: String { state.isEmpty ? message : "\(message) (\(state))" }

    /// Creates the error from libpq's text about all servers, or all addresses of one, that it
    /// tried.
    ///
    /// An answer of one server says more than that another one, such as a former primary, did not
    /// answer. That a server is read-only says least, because every standby of a cluster is.
    package init(connecting text: String) {
        // Hints are on indented lines below a message.
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

    /// Returns the first line of a text, which says what is wrong; hints of libpq follow it.
    package static func line(_ text: String) -> String {
        let lines = text.split(whereSeparator: \.isNewline)
        return lines.first.map { beginning(of: $0) } ?? "no reason was given"
    }

    /// Cuts a line by Unicode scalars, because one character may have any number of them.
    private static func beginning(of line: Substring) -> String {
        String(String.UnicodeScalarView(line.unicodeScalars.prefix(300)))
    }

    /// Returns the error of a server that did not answer on an existing connection.
    static func noAnswer(within patience: Duration) -> PostgresError {
        PostgresError(
            state: "", message: "no answer within \(patience.components.seconds) s",
            isUnanswered: true)
    }

    /// The reason why a server could not be used.
    package enum Refusal: Sendable, Hashable {
        case password, database, full, unreachable
        /// The database exists, and is set to take no connections.
        case closed
        /// The server does not prove its identity, or does not support TLS although that was
        /// required.
        case untrusted
    }

    /// Whether a server accepted the connection and closed it without a message.
    package var isCutOff: Bool {
        state.isEmpty
            && ["closed the connection unexpectedly", "Connection reset", "SYSCALL", "Broken pipe"]
                .contains { message.contains($0) }
    }

    /// What to check if no connection can be made.
    ///
    /// libpq reports a server that accepts the connection and then hangs like a network that drops
    /// all packets.
    package var whatToCheck: String {
        let isTimedOut = state.isEmpty && message.hasSuffix("timeout expired")
        return "check host, port and network"
            + (isTimedOut ? ", and whether the server hangs" : "")
    }

    /// Whether the server is read-only, as a standby is; libpq has two messages for it, depending
    /// on `target_session_attrs`.
    package var isOfReader: Bool {
        state == "25006" || message.contains("read-only") || message.contains("hot standby mode")
    }

    /// Whether the server does not support TLS although it was required, which is the default for a
    /// remote server.
    package var speaksNoTLS: Bool { state.isEmpty && message.contains("SSL was required") }

    /// The messages of a server that does not accept a role, or its proof.
    private static let refusesRole = [
        "authentication failed", "no password supplied", "no pg_hba.conf entry",
        "pg_hba.conf rejects", "is not permitted to log in", "permission denied for database",
        "requires a valid client certificate",
    ]

    /// The reason why a connection failed.
    ///
    /// libpq gives no SQLSTATE for it, so it is recognised by its words. In an unknown language it
    /// is ``Refusal/unreachable``, and the server's own message says more.
    package var refusal: Refusal {
        if Self.refusesRole.contains(where: message.contains) { return .password }
        if message.contains("does not exist") {
            if message.contains("role \"") { return .password }
            if message.contains("database \"") { return .database }
        }
        if message.contains("not currently accepting connections") { return .closed }
        if message.contains("certificate") || speaksNoTLS { return .untrusted }
        if message.contains("too many") || message.contains("remaining connection slots")
            || message.contains("max_wal_senders")
        {
            return .full
        }
        return .unreachable
    }
}
