import PostgresLink
import Storage

extension PostgresSession {
    /// Why the store cannot be used although a server answers, without anything of the server;
    /// `nil` if none answers, or it is not known.
    static func obstacle(of error: any Error) -> String? {
        if let failure = error as? PostgresError { return failure.obstacle }
        guard case StorageError.inaccessible(_, let reason) = error,
            !reason.hasPrefix(PostgresError.unreachable), !reason.hasPrefix(PostgresError.refusing)
        else { return nil }
        // What the server said stands in parentheses.
        return reason.replacing(#/ \(.*\)/#, with: "")
    }
}

extension PostgresError {
    /// How reasons begin that nobody can do anything about with Belfry.
    static let unreachable = "the server cannot be reached"
    static let refusing = "the server refuses"

    /// What the server says where a column, a function, or a constraint that a statement names is
    /// not there, or a column is of another type: no statement is put together of what callers
    /// say, so that somebody has altered the tables, or they are another version's.
    private static let ofAlteredTables: Set = ["42703", "42704", "42804", "42883", "42P10"]

    /// What a failure of the server means for the store.
    enum Verdict {
        /// The connection, or the server, is gone for now: another connection may work.
        case lost
        /// Two transactions stood in each other's way; run again, it works.
        case again
        /// What was prepared is of tables that somebody has changed since, as a newer version does
        /// when it starts beside this one: prepared anew, by another connection, it works.
        case outdated
        /// Nothing was written, for want of room on the server.
        case noRoom
        /// The server failed at something of its own, as a file that it cannot open, or a catalogue
        /// that somebody changes at that moment: another statement may work, and this one later.
        case failing
        /// Nothing was written, because somebody else took too long.
        case busy
        /// The server found damage: nothing more may be acknowledged on top of it.
        case damaged
        /// Somebody took a right from the role, or the tables or parts of them away: until that is
        /// put right, nothing works, and then everything does.
        case barred
        /// A statement was refused.
        case refused

        /// Whether whatever else is tried now would end likewise, after as long a wait.
        var concernsAll: Bool { [.lost, .outdated, .busy, .barred].contains(self) }
    }

    /// Judges the failure by its SQLSTATE.
    var verdict: Verdict {
        if state.isEmpty || state.hasPrefix("08") { return .lost }
        return switch state {
        // Ended, shut down, starting, its database dropped; only reads now; no connection left;
        // idle, or at one transaction, for too long.
        case "57P01", "57P02", "57P03", "57P04", "57P05", "25006", "25P03", "25P04", "53300": .lost
        case "40P01", "40001": .again
        case "0A000": .outdated
        case "53100", "53200", "53400": .noRoom
        case "55P03", "57014": .busy
        case "XX001", "XX002": .damaged
        case "42501", "42P01", "3F000": .barred
        case _ where Self.ofAlteredTables.contains(state): .barred
        // Too many files are open on the whole machine; one cannot be read, written or found; what
        // it calls an error of its own; a snapshot that was kept for longer than it lets anybody.
        case "53000", "58000", "58030", "58P01", "58P02", "XX000", "72000": .failing
        default: .refused
        }
    }

    /// Why the store cannot be used although the server can be reached, without anything of the
    /// server; `nil` if that is not what failed.
    var obstacle: String? {
        guard verdict == .barred else { return nil }
        if state == "42501" {
            return "the role of the database lacks a right: let it own its schema"
        }
        if Self.ofAlteredTables.contains(state) {
            return "the store's tables are not as this Belfry needs them: undo what altered them, "
                + "or run the version that belfry nodes shows for the other relays"
        }
        return "the store's tables cannot be found: was its schema dropped or renamed, or may the "
            + "role no longer use it?"
    }

    private var words: String { description }

    /// What somebody is told who wanted something of an open store.
    func storageError(of place: PostgresPlace) -> any Error {
        switch verdict {
        case .lost: StorageError.unavailable(words)
        case .barred: StorageError.unavailable(obstacle.map { "\($0) (\(words))" } ?? words)
        case .again: StorageError.overloaded("others wrote the same: \(words)")
        case .outdated, .failing: StorageError.unavailable(words)
        case .noRoom: StorageError.noRoom("the database: \(words)")
        case .busy: StorageError.overloaded("the database is busy: \(words)")
        case .damaged: StorageError.damaged(path: "\(place)", reason: words)
        case .refused: self
        }
    }

    /// Does what each request needs, so that none is at fault where the server refuses it.
    ///
    /// A database that takes no transactions any more until somebody has vacuumed it refuses
    /// whoever comes, and so do tables that somebody has changed: until that is put right.
    static func concerningAll<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let error as PostgresError where error.verdict == .refused {
            throw StorageError.unavailable(error.words)
        }
    }

    /// What somebody is told who could not open a store.
    func opening(_ place: PostgresPlace) -> StorageError {
        .inaccessible(path: "\(place)", reason: reasonNotOpened)
    }

    private var reasonNotOpened: String {
        if isOfReader {
            return "the server only reads (\(words)): name the primary, or all hosts of the cluster"
        }
        if state == "42501" {
            return "the role lacks a right (\(words)): let it own its schema, or make one by "
                + "CREATE SCHEMA … AUTHORIZATION …"
        }
        if state == "53300" { return Self.full(words) }
        if state == "55P03" {
            return "somebody else holds the store's tables for long (\(words)), as pg_dump does, "
                + "or changes its schema: begin again once that has ended"
        }
        if message.contains("definition of service") {
            return "there is no such service (\(words)): name one of the file that PGSERVICEFILE "
                + "names"
        }
        // Of what waits for nobody else the server itself may say that it takes too long.
        if isUnanswered || state == "57014" {
            return "the server does not answer (\(words)): it stands still, or a synchronous "
                + "standby is away for which it waits"
        }
        // As for who stands by, or comes, while somebody has dropped or renamed the schema.
        if ["42P01", "3F000", "42703"].contains(state), let obstacle {
            return "\(obstacle) (\(words))"
        }
        guard state.isEmpty else { return "\(Self.refusing) (\(words)): see its log" }
        return switch refusal {
        case .password:
            "the server does not let the role in (\(words)): check the password in the file that "
                + "PGPASSFILE names, and pg_hba.conf"
        case .database: "there is no such database (\(words)): name one that exists in the URL"
        case .full: Self.full(words)
        case .untrusted where speaksNoTLS:
            "the server speaks no TLS (\(words)): set ssl = on there, with a certificate, or say "
                + "sslmode=disable in the URL where nobody else is on the network between"
        case .untrusted:
            "the server does not prove who it is (\(words)): name the file with its authority in "
                + "sslrootcert, and the host as its certificate has it"
        case .unreachable:
            "\(Self.unreachable) (\(words)): \(whatToCheck)"
        }
    }

    private static func full(_ words: String) -> String {
        "the server has no connection left (\(words)): raise max_connections, or end others"
    }
}
