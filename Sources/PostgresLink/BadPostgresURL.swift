/// Says what is wrong with a connection URL, without the URL itself, which may contain a password.
package struct BadPostgresURL: Error, Sendable, Hashable {
    /// What is wrong, and what is allowed.
    package let reason: String

    init(reason: String) { self.reason = reason }

    /// Takes libpq's message about a text, without the parts of the text that it quotes.
    init(said message: String) {
        let line = PostgresError.line(message)
        // Split by Unicode scalars: a combining mark after a quotation mark would form one
        // character with it, and the quoted text would be shown.
        let parts = line.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false)
            .map { String($0) }
        // libpq also quotes characters that it expected; these are shown.
        let first = parts.indices.first { $0 % 2 == 1 && !Self.signs.contains(parts[$0]) }
        // A quoted text may itself contain quotation marks, so nothing after it is kept.
        self.init(
            reason: first.map { parts[..<$0].joined(separator: "\"") + "\"…\"" } ?? line)
    }

    private static let signs: Set<String> = ["=", ":", "/", "]"]

    // MARK: Values

    private static let modes: Set = [
        "disable", "allow", "prefer", "require", "verify-ca", "verify-full",
    ]
    private static let sessions: Set = [
        "any", "read-write", "read-only", "primary", "standby", "prefer-standby",
    ]

    /// Returns what is wrong with a value; `nil` if nothing is.
    ///
    /// libpq reports such a value only when it connects, as if no server could be reached.
    static func wrongValue(_ parameters: [String: String]) -> BadPostgresURL? {
        let ports = parameters["port"]?.split(separator: ",") ?? []
        guard ports.allSatisfy({ (1...65_535).contains(Self.number($0) ?? 0) }) else {
            return BadPostgresURL(reason: "a port must be a whole number from 1 to 65535")
        }
        if let time = parameters["connect_timeout"], Self.number(time) == nil {
            return BadPostgresURL(reason: "connect_timeout must be a whole number of seconds")
        }
        for (name, values) in [("sslmode", modes), ("target_session_attrs", sessions)] {
            if let value = parameters[name], !values.contains(value) {
                return BadPostgresURL(
                    reason: "\(name) must be one of \(values.sorted().joined(separator: ", "))")
            }
        }
        return nil
    }

    /// Parses a number as libpq does, which allows white space around it.
    private static func number(_ text: some StringProtocol) -> Int? {
        Int(String(text).filter { !$0.isWhitespace })
    }

    // MARK: Other texts

    /// The error for a text that libpq would parse as keys and values, but that has no `=`.
    static let noURL = BadPostgresURL(
        reason: "a URL of PostgreSQL begins with postgresql:// or postgres://, for example "
            + "postgresql://belfry@db.example/relay; libpq's key=value pairs are allowed too")

    /// Returns whether a text has another scheme than PostgreSQL's, or is neither a URL nor
    /// key-value pairs.
    static func isNoURL(_ text: String) -> Bool {
        if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") { return false }
        guard let equals = text.firstIndex(of: "=") else { return true }
        return text[..<equals].contains("://")
    }

    // MARK: Passwords that are cut

    /// The error for a URL whose password contains a `/`.
    ///
    /// libpq takes what follows the `/` as the name of the database.
    static let cutPassword = BadPostgresURL(
        reason: "it has an \"@\" after a \"/\": in a name, write them as %40 and %2F; a password "
            + "does not belong in the URL, but in the file that PGPASSFILE names, or in PGPASSWORD")

    /// Returns whether a URL has an `@` in its path.
    static func hasCutPassword(_ text: String) -> Bool {
        guard let scheme = text.firstRange(of: "://") else { return false }
        let path = text[scheme.upperBound...].drop { $0 != "/" }.prefix { $0 != "?" }
        return path.contains("@")
    }
}
