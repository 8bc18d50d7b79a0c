import PostgresLink
import Storage

extension PostgresSession {
    /// Returns why the store cannot be used although a server answers, without the server's own
    /// words.
    ///
    /// It is `nil` if no server answers, or the reason is unknown.
    static func obstacle(of error: any Error) -> String? {
        if let failure = error as? PostgresError { return failure.obstacle }
        guard case StorageError.inaccessible(_, let reason) = error,
            !reason.hasPrefix(PostgresError.unreachable), !reason.hasPrefix(PostgresError.refusing)
        else { return nil }
        // The server's own words are in parentheses.
        return reason.replacing(#/ \(.*\)/#, with: "")
    }
}

extension PostgresError {
    /// The beginnings of reasons that name no problem of the store itself.
    static let unreachable = "the server cannot be reached"
    static let refusing = "the server reports an error"

    /// The SQLSTATEs for a missing column, function or constraint, or a column of another type.
    ///
    /// No statement contains names from callers. So the tables were altered, or belong to another
    /// version.
    private static let ofAlteredTables: Set = ["42703", "42704", "42804", "42883", "42P10"]

    /// The meaning of a server's error for the store.
    enum Verdict {
        /// The connection or the server is lost for now; another connection may work.
        case lost
        /// Two transactions conflicted; a retry works.
        case again
        /// A prepared statement refers to tables that were changed since, for example by a newer
        /// version that starts beside this one.
        ///
        /// It works after being prepared again on a new connection.
        case outdated
        /// Nothing was written, because the server has no space.
        case noRoom
        /// The server failed internally, for example at a file that it cannot open, or at a
        /// catalogue that is just being changed.
        ///
        /// Other statements may work, and this one later.
        case failing
        /// Nothing was written, because of a lock or a statement that took too long.
        case busy
        /// The server found damage; nothing more may be acknowledged.
        case damaged
        /// A privilege of the role, or tables or parts of them, were removed.
        ///
        /// Nothing works until that is corrected.
        case barred
        /// A statement was refused.
        case refused

        /// Whether other statements would fail too, after as long a wait.
        var concernsAll: Bool { [.lost, .outdated, .busy, .barred].contains(self) }
    }

    /// The verdict, by the SQLSTATE.
    var verdict: Verdict {
        if state.isEmpty || state.hasPrefix("08") { return .lost }
        return switch state {
        // The session was terminated, or the server shuts down, starts or dropped the database; it
        // is read-only now; no connection is left; the session was idle, or in one transaction, for
        // too long.
        case "57P01", "57P02", "57P03", "57P04", "57P05", "25006", "25P03", "25P04", "53300": .lost
        case "40P01", "40001": .again
        case "0A000": .outdated
        case "53100", "53200", "53400": .noRoom
        case "55P03", "57014": .busy
        case "XX001", "XX002": .damaged
        case "42501", "42P01", "3F000": .barred
        case _ where Self.ofAlteredTables.contains(state): .barred
        // The machine has too many open files; a file cannot be read, written or found; an internal
        // error; a snapshot is too old.
        case "53000", "58000", "58030", "58P01", "58P02", "XX000", "72000": .failing
        default: .refused
        }
    }

    /// Why the store cannot be used although the server can be reached, without the server's own
    /// words.
    ///
    /// It is `nil` for other failures.
    var obstacle: String? {
        guard verdict == .barred else { return nil }
        if state == "42501" {
            return "the database role lacks a privilege: make it the owner of the schema, or "
                + "grant it SELECT, INSERT, UPDATE and DELETE on all tables there, and SELECT on "
                + "all sequences"
        }
        if Self.ofAlteredTables.contains(state) {
            return "the store's tables are not as this Belfry needs them: undo the alteration, or "
                + "run the version that belfry nodes shows for the other relays"
        }
        return "the store's tables cannot be found: check whether their schema was dropped "
            + "or renamed, or the role lost the right to use it"
    }

    private var words: String { description }

    /// Returns the error for a caller of an open store.
    func storageError(of place: PostgresPlace) -> any Error {
        switch verdict {
        case .lost: StorageError.unavailable(words)
        case .barred: StorageError.unavailable(obstacle.map { "\($0) (\(words))" } ?? words)
        case .again: StorageError.overloaded("another transaction wrote the same rows: \(words)")
        case .outdated, .failing: StorageError.unavailable(words)
        case .noRoom: StorageError.noRoom("the database: \(words)")
        case .busy: StorageError.overloaded("the database is busy: \(words)")
        case .damaged: StorageError.damaged(path: "\(place)", reason: words)
        case .refused: self
        }
    }

    /// Runs `body`, which every request needs; a refusal by the server is then not a request's own
    /// fault.
    ///
    /// For example, a database that needs a vacuum against transaction ID wraparound refuses all
    /// writes, and altered tables do too, until that is corrected.
    static func concerningAll<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as PostgresError where error.verdict == .refused {
            throw StorageError.unavailable(error.words)
        }
    }

    /// Returns the error for a caller that could not open a store.
    func opening(_ place: PostgresPlace) -> StorageError {
        .inaccessible(path: "\(place)", reason: reasonNotOpened)
    }

    private var reasonNotOpened: String {
        if isOfReader {
            return "the server is read-only (\(words)): name the primary, or all hosts of the "
                + "cluster"
        }
        if state == "42501" {
            return "the role lacks a privilege (\(words)): make it the owner of its schema, "
                + "create one for it with CREATE SCHEMA … AUTHORIZATION …, or grant it SELECT, "
                + "INSERT, UPDATE and DELETE on all tables of one that is there, and SELECT on all "
                + "sequences"
        }
        if state == "53300" { return Self.full(words) }
        if state == "55P03" {
            return "another client holds locks on the store's tables for too long (\(words)), as "
                + "pg_dump does, or changes the schema: start again when it has finished"
        }
        if message.contains("definition of service") || message.contains("service file") {
            return "there is no such service (\(words)): name one from the file that PGSERVICEFILE "
                + "names"
        }
        // The server itself may report that a statement takes too long although it waits for no
        // other session.
        if isUnanswered || state == "57014" {
            return "the server does not answer (\(words)): it hangs, or it waits for a synchronous "
                + "standby that is away"
        }
        // This happens to a relay that stands by or starts after the schema was dropped or renamed.
        if ["42P01", "3F000", "42703"].contains(state), let obstacle {
            return "\(obstacle) (\(words))"
        }
        guard state.isEmpty else { return "\(Self.refusing) (\(words)): see its log" }
        return switch refusal {
        case .password:
            "the server does not let the role log in (\(words)): check the password in the file "
                + "that PGPASSFILE names, and pg_hba.conf"
        case .database: "there is no such database (\(words)): name one that exists in the URL"
        case .closed:
            "the database takes no connections (\(words)): allow them with ALTER DATABASE … WITH "
                + "ALLOW_CONNECTIONS true, or name another one in the URL"
        case .full: Self.full(words)
        case .untrusted where speaksNoTLS:
            "the server does not speak TLS (\(words)): set ssl = on there, with a certificate, or, "
                + "on a network that nobody else uses, set sslmode=disable in the URL"
        case .untrusted:
            "the server's certificate cannot be verified (\(words)): name the file with its "
                + "authority in sslrootcert, and the host as in the certificate"
        case .unreachable:
            "\(Self.unreachable) (\(words)): \(whatToCheck)"
        }
    }

    private static func full(_ words: String) -> String {
        "the server has no connection left (\(words)): raise max_connections, or end other "
            + "connections"
    }
}
