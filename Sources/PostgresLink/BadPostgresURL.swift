/// What is wrong with the text that says where a server is; the text itself is not in it, because
/// it may hold a password.
package struct BadPostgresURL: Error, Sendable, Hashable {
    /// What is wrong, and what is allowed.
    package let reason: String

    init(reason: String) { self.reason = reason }

    /// Takes what libpq says of a text, without what it quotes of it.
    init(said message: String) {
        let line = PostgresError.line(message)
        // By scalars: what begins with a mark makes one letter of it and the quotation mark, and
        // would be told.
        let parts = line.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false)
            .map { String($0) }
        // Signs that should be there are quoted too, and are of libpq.
        let first = parts.indices.first { $0 % 2 == 1 && !Self.signs.contains(parts[$0]) }
        // What is quoted may have quotes itself: nothing after it is kept.
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

    /// What is wrong with a value, which libpq says only when it connects, as if no server could be
    /// reached; `nil` if nothing is.
    static func wrongValue(_ parameters: [String: String]) -> BadPostgresURL? {
        let ports = parameters["port"]?.split(separator: ",") ?? []
        guard ports.allSatisfy({ (1...65_535).contains(Self.number($0) ?? 0) }) else {
            return BadPostgresURL(reason: "a port is a whole number from 1 to 65535")
        }
        if let time = parameters["connect_timeout"], Self.number(time) == nil {
            return BadPostgresURL(reason: "connect_timeout is a whole number of seconds")
        }
        for (name, values) in [("sslmode", modes), ("target_session_attrs", sessions)] {
            if let value = parameters[name], !values.contains(value) {
                return BadPostgresURL(
                    reason: "\(name) is one of \(values.sorted().joined(separator: ", "))")
            }
        }
        return nil
    }

    /// As libpq reads it, which lets blanks stand around.
    private static func number(_ text: some StringProtocol) -> Int? {
        Int(String(text).filter { !$0.isWhitespace })
    }

    // MARK: Other texts

    /// What libpq takes for pairs of keys and values, and finds no `=` in.
    static let noURL = BadPostgresURL(
        reason: "an URL of PostgreSQL begins with postgresql:// or postgres://, as "
            + "postgresql://belfry@db.example/relay; libpq's key=value pairs are taken too")

    /// Whether a text has another scheme than PostgreSQL's, or is neither an URL nor pairs.
    static func isNoURL(_ text: String) -> Bool {
        if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") { return false }
        guard let equals = text.firstIndex(of: "=") else { return true }
        return text[..<equals].contains("://")
    }

    // MARK: Passwords that are cut

    /// An URL whose password has a `/`: for libpq the server's place ends there, and the rest is
    /// the database's name.
    static let cutPassword = BadPostgresURL(
        reason: "it has an \"@\" after a \"/\": in a name they are written as %40 and %2F, and a "
            + "password does not belong into it, but into the file that PGPASSFILE names, or into "
            + "PGPASSWORD")

    /// Whether an URL has an `@` in its path.
    static func hasCutPassword(_ text: String) -> Bool {
        guard let scheme = text.firstRange(of: "://") else { return false }
        let path = text[scheme.upperBound...].drop { $0 != "/" }.prefix { $0 != "?" }
        return path.contains("@")
    }
}
