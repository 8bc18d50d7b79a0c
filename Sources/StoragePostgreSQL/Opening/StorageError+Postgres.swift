import PostgresLink
import Storage

extension PostgresError {
    /// What a failure of the server means for the store.
    enum Verdict {
        /// The connection, or the server, is gone for now: another connection may work.
        case lost
        /// Two transactions stood in each other's way; run again, it works.
        case again
        /// Nothing was written, for want of room on the server.
        case noRoom
        /// Nothing was written, because somebody else took too long.
        case busy
        /// The server found damage: nothing more may be acknowledged on top of it.
        case damaged
        /// A statement was refused.
        case refused

        /// Whether whatever else is tried now would end likewise, after as long a wait.
        var concernsAll: Bool { self == .lost || self == .busy }
    }

    /// Judges the failure by its SQLSTATE.
    var verdict: Verdict {
        if state.isEmpty || state.hasPrefix("08") { return .lost }
        return switch state {
        // Ended, shut down, starting; only reads now; no connection left; idle for too long.
        case "57P01", "57P02", "57P03", "57P05", "25006", "25P03", "53300": .lost
        case "40P01", "40001": .again
        case "53100", "53200", "53400": .noRoom
        case "55P03", "57014": .busy
        case "XX001", "XX002": .damaged
        default: .refused
        }
    }

    /// The words for it, with the server's code.
    private var words: String { state.isEmpty ? message : "\(message) (\(state))" }

    /// What somebody is told who wanted something of an open store.
    func storageError(of place: PostgresPlace) -> any Error {
        switch verdict {
        case .lost: StorageError.unavailable(words)
        case .again: StorageError.overloaded("others wrote the same: \(words)")
        case .noRoom: StorageError.noRoom("the database: \(words)")
        case .busy: StorageError.overloaded("the database is busy: \(words)")
        case .damaged: StorageError.damaged(path: "\(place)", reason: words)
        case .refused: self
        }
    }

    /// What somebody is told who could not open a store.
    func opening(_ place: PostgresPlace) -> StorageError {
        .inaccessible(path: "\(place)", reason: reasonNotOpened)
    }

    private var reasonNotOpened: String {
        if message.contains("read-only") || state == "25006" {
            return "the server only reads (\(words)): name the primary, or all hosts of the cluster"
        }
        if state == "42501" {
            return "the role lacks a right (\(words)): let it own its schema, or make one by "
                + "CREATE SCHEMA … AUTHORIZATION …"
        }
        if state == "53300" { return Self.full(words) }
        if message.contains("definition of service") {
            return "there is no such service (\(words)): name one of the file that PGSERVICEFILE "
                + "names"
        }
        guard state.isEmpty else { return "the server refuses (\(words)): see its log" }
        return switch refusal {
        case .password:
            "the server does not let the role in (\(words)): check the password in the file that "
                + "PGPASSFILE names, and pg_hba.conf"
        case .database: "there is no such database (\(words)): name one that exists in storage.url"
        case .full: Self.full(words)
        case .untrusted:
            "the server does not prove who it is (\(words)): name the file with its authority in "
                + "sslrootcert, and the host as its certificate has it"
        case .unreachable:
            "the server cannot be reached (\(words)): check host, port and network"
        }
    }

    private static func full(_ words: String) -> String {
        "the server has no connection left (\(words)): raise max_connections, or end others"
    }
}
