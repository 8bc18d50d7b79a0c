package import PostgresLink

/// The reasons why a database is not followed, each with advice.
package enum FollowProblem: Error, Sendable, Hashable {
    case badURL(String)
    case unreachable(String)
    case untrusted(String)
    case wrongPassword(String)
    case databaseMissing(String)
    case serverTooOld(Int)
    case walLevel(String)
    case noReplicationRight(role: String)
    case notPermitted(String)
    case publicationMissing(String)
    case publicationEmpty(String)
    case publicationLost(String)
    case tableMissing(String)
    case identityMissing(String)
    case identityVirtual(String)
    case tablesNotPublished(publication: String, tables: String)
    case slotMissing(String)
    case slotLost(String)
    case slotMoved(String)
    case slotTaken(String)
    case slotOfOtherKind(String)
    case serverFull(String)
    case serverRefused(String)
    case rowRefused(String)
    case outboxMissing
    case outboxEmpty
    case outboxTaken(String)
    case otherServer(expected: String, found: String)
    case serverWentBack(String)
    case storeRestored(String)
    case brokenStream(String)
    case relayUnreachable(String)
    case relayRefuses(String)

    /// The word for the problem in metrics and lists.
    package var code: String {
        switch self {
        case .badURL: "badURL"
        case .unreachable: "unreachable"
        case .untrusted: "untrusted"
        case .wrongPassword: "wrongPassword"
        case .databaseMissing: "databaseMissing"
        case .serverTooOld: "serverTooOld"
        case .walLevel: "walLevel"
        case .noReplicationRight: "noReplicationRight"
        case .notPermitted: "notPermitted"
        case .publicationMissing: "publicationMissing"
        case .publicationEmpty: "publicationEmpty"
        case .publicationLost: "publicationLost"
        case .tableMissing: "tableMissing"
        case .identityMissing: "identityMissing"
        case .identityVirtual: "identityVirtual"
        case .tablesNotPublished: "tablesNotPublished"
        case .slotMissing: "slotMissing"
        case .slotLost: "slotLost"
        case .slotMoved: "slotMoved"
        case .slotTaken: "slotTaken"
        case .slotOfOtherKind: "slotOfOtherKind"
        case .serverFull: "serverFull"
        case .serverRefused: "serverRefused"
        case .rowRefused: "rowRefused"
        case .outboxMissing: "outboxMissing"
        case .outboxEmpty: "outboxEmpty"
        case .outboxTaken: "outboxTaken"
        case .otherServer: "otherServer"
        case .serverWentBack: "serverWentBack"
        case .storeRestored: "storeRestored"
        case .brokenStream: "brokenStream"
        case .relayUnreachable: "relayUnreachable"
        case .relayRefuses: "relayRefuses"
        }
    }

    /// All words that ``code`` can be, in the order of the documentation.
    package static let codes = [
        "badURL", "unreachable", "untrusted", "wrongPassword", "databaseMissing", "serverTooOld",
        "walLevel", "noReplicationRight", "notPermitted", "publicationMissing", "publicationEmpty",
        "publicationLost", "tableMissing", "identityMissing", "identityVirtual",
        "tablesNotPublished", "slotMissing", "slotLost", "slotMoved", "slotTaken",
        "slotOfOtherKind", "serverFull", "serverRefused", "rowRefused", "outboxMissing",
        "outboxEmpty", "outboxTaken", "otherServer", "serverWentBack", "storeRestored",
        "brokenStream", "relayUnreachable", "relayRefuses",
    ]

    /// Whether an operator must act, because a retry alone does not help.
    package var needsSomebody: Bool {
        switch self {
        case .unreachable, .slotTaken, .outboxTaken, .serverFull, .serverRefused, .brokenStream,
            .relayUnreachable:
            false
        default: true
        }
    }

    /// The problem and what to do about it, in one sentence.
    ///
    /// It may contain the server's own words and goes to the log, so its length is limited.
    package var advice: String {
        let words = words
        guard words.utf8.count > Self.mostBytes else { return words }
        return String(String.UnicodeScalarView(words.unicodeScalars.prefix(1000))) + "…"
    }

    /// The maximum length in bytes: the names of tables may be many.
    private static let mostBytes = 65_536

    private var words: String {
        switch self {
        case .badURL(let reason): "The URL of the database cannot be used: \(reason)."
        case .unreachable(let reason) where PostgresError(state: "", message: reason).isOfReader:
            "The server is read-only (\(reason)): name the primary, or all hosts of the cluster. "
                + "Belfry keeps trying."
        case .unreachable(let reason)
        where PostgresError(state: "", message: reason).refusal == .closed:
            "The database takes no connections (\(reason)): allow them with ALTER DATABASE … WITH "
                + "ALLOW_CONNECTIONS true. Belfry keeps trying."
        case .unreachable(let reason):
            "PostgreSQL cannot be reached (\(reason)): "
                + "\(PostgresError(state: "", message: reason).whatToCheck). Belfry keeps trying."
        case .untrusted(let reason) where PostgresError(state: "", message: reason).speaksNoTLS:
            "The server does not speak TLS (\(reason)): set ssl = on there, with a certificate, "
                + "or, on a network that nobody else uses, set sslmode=disable in the URL."
        case .untrusted(let reason):
            "The server's certificate cannot be verified (\(reason)): name the file with its "
                + "authority in sslrootcert, and the host as in the certificate."
        case .wrongPassword(let reason):
            "PostgreSQL does not let the role log in (\(reason)): check the password in the file "
                + "that PGPASSFILE names or in PGPASSWORD, the role's right to log in and to "
                + "CONNECT, and pg_hba.conf."
        case .databaseMissing(let reason):
            "There is no such database (\(reason)): name one that exists in the URL."
        case .serverTooOld(let version):
            "The server is PostgreSQL \(version / 10_000), but 14 is the oldest version that can "
                + "be followed: upgrade it, or let a webhook post its changes."
        case .walLevel(let level):
            "wal_level is \(level): set wal_level = logical in postgresql.conf and restart the "
                + "server."
        case .noReplicationRight(let role):
            "The role \(role) may not replicate: ALTER ROLE \(role.shownName) REPLICATION (on a "
                + "managed server, grant it the provider's role for replication)."
        case .notPermitted(let reason):
            "The role lacks a privilege (\(reason)): grant it what docs/postgresql.md lists, or "
                + "run what --print-sql shows, as the owner of the tables."
        case .publicationMissing(let name):
            "There is no publication \(name): CREATE PUBLICATION \(name.shownName) FOR TABLE …, or "
                + "use --make with --tables."
        case .publicationEmpty(let name):
            "The publication \(name) has no table: ALTER PUBLICATION \(name.shownName) ADD "
                + "TABLE …."
        case .publicationLost(let reason):
            "The server cannot report what was changed while the publication did not exist "
                + "(\(reason)): create the publication, drop the slot with SELECT "
                + "pg_drop_replication_slot(…), then use --make to begin again with a snapshot."
        case .tableMissing(let tables):
            "The database does not have these tables (\(tables)): name existing ones, with their "
                + "schema, each with a --tables of its own."
        case .identityMissing(let tables):
            "The publication was not created, because PostgreSQL would refuse each UPDATE and "
                + "DELETE of tables without a primary key, or whose key is DEFERRABLE (\(tables)): "
                + "ALTER TABLE … REPLICA IDENTITY FULL, or name other tables with --tables."
        case .identityVirtual(let tables):
            "The publication was not created, because PostgreSQL would refuse each UPDATE and "
                + "DELETE of tables with REPLICA IDENTITY FULL and virtual generated columns, "
                + "which no publication contains (\(tables)): ALTER TABLE … REPLICA IDENTITY "
                + "DEFAULT, make the columns STORED, or name other tables with --tables."
        case .tablesNotPublished(let publication, let tables):
            "The publication \(publication) exists, but lacks some of the named tables "
                + "(\(tables)): ALTER PUBLICATION \(publication.shownName) ADD TABLE …, or name "
                + "a publication that does not exist yet, which --make creates."
        case .slotMissing(let name):
            "The server has no slot \(name), so changes since it was lost cannot be reported: use "
                + "--make to begin again with a snapshot."
        case .slotLost(let name):
            "The server has removed log that the slot \(name) needed (max_slot_wal_keep_size, "
                + "idle_replication_slot_timeout): SELECT pg_drop_replication_slot('\(name)'), "
                + "then use --make to begin again with a snapshot."
        case .slotMoved(let reason):
            "Another follower used the slot meanwhile, or the slot was dropped and created again "
                + "(\(reason)): what was changed in between is missing here. Drop it with SELECT "
                + "pg_drop_replication_slot(…) and use --make to begin again with a snapshot; or "
                + "save the source as it is, or start the follower again, to go on without those "
                + "changes."
        case .slotTaken(let reason):
            "Another follower uses this slot (\(reason)): end it, or name another slot. Belfry "
                + "keeps trying."
        case .slotOfOtherKind(let reason):
            "The slot cannot be followed (\(reason)): name another slot."
        case .serverFull(let reason):
            "The server has no free replication slot, WAL sender or connection (\(reason)): raise "
                + "max_replication_slots, max_wal_senders or max_connections. Belfry keeps trying."
        case .serverRefused(let reason):
            "PostgreSQL reports an error (\(reason)): see the server's log. Belfry keeps trying."
        case .rowRefused(let reason):
            "PostgreSQL cannot send a row (\(reason)): correct the row, or the publication's WHERE "
                + "condition if that fails for it. That does not help for a change that is "
                + "already in the log: then drop the slot with SELECT "
                + "pg_drop_replication_slot(…) and use --make to begin again with a snapshot; "
                + "with an outbox, delete the row from belfry.outbox."
        case .outboxMissing:
            "The database has no outbox: use --make with --tables, or run what --print-sql shows."
        case .outboxEmpty:
            "No table has the outbox's triggers: use --make with --tables, or run what --print-sql "
                + "shows."
        case .outboxTaken(let holder):
            "Another client uses this outbox, or holds its lock (\(holder)): end it. Belfry keeps "
                + "trying."
        case .otherServer(let expected, let found):
            "The server is another cluster (\(found); it was \(expected)): if it is the same "
                + "database, upgraded with its slot by pg_upgrade, save the source as it is, or "
                + "start the follower again, to go on; otherwise name its slot and begin with a "
                + "source of another name, because positions start again."
        case .serverWentBack(let reason):
            "The server was restored to an earlier state (\(reason)), so its changes look older "
                + "than those that the relay has: follow it with a slot and a source of other "
                + "names."
        case .storeRestored(let reason):
            "The relay's store was restored from a copy, and changes since that copy may be "
                + "missing (\(reason)): drop the slot with SELECT pg_drop_replication_slot(…), or "
                + "the outbox with --drop, and save the source with --make to begin again with a "
                + "snapshot; or save the source as it is to go on without the missing changes."
        case .brokenStream(let reason):
            "What the server sends cannot be read (\(reason)): please report this. Belfry keeps "
                + "trying. To go on without it, drop the slot with SELECT "
                + "pg_drop_replication_slot(…), or the outbox with --drop, then use --make to "
                + "begin again with a snapshot."
        case .relayUnreachable(let reason):
            "The relay cannot take changes (\(reason)): they wait in PostgreSQL, and Belfry keeps "
                + "trying."
        case .relayRefuses(let reason):
            "The relay refuses changes (\(reason)): correct the source. They wait in PostgreSQL."
        }
    }
}

extension PostgresError {
    /// The error as a problem of a follower.
    var problem: FollowProblem {
        guard !state.isEmpty else {
            return switch refusal {
            case .password: .wrongPassword(message)
            case .database: .databaseMissing(message)
            case .full: .serverFull(message)
            case .unreachable, .closed: .unreachable(message)
            case .untrusted: .untrusted(message)
            }
        }
        return switch state {
        // The server ends connections when it stops or has crashed, or on an administrator's
        // command.
        case "57P01", "57P02", "57P03", "57P05": .unreachable(message)
        case "42501": .notPermitted(message)
        case "53400", "53300": .serverFull(message)
        case "55006": .slotTaken(message)
        // Two followers that begin at the same time create a slot of the same name.
        case "42710" where message.contains("replication slot"): .slotTaken(message)
        case "42704" where message.contains("publication"): .publicationLost(message)
        // Errors of data, such as a text that is not valid UTF-8, or a publication's condition that
        // divides by zero; 22023 is about a name in a command.
        case let data where data.hasPrefix("22") && data != "22023":
            .rowRefused("\(message) (\(state))")
        // A row that is larger than a message of the server can be.
        case "54000",
            "XX000" where message.contains("invalid memory alloc request size"):
            .rowRefused("\(message) (\(state))")
        default: .serverRefused("\(message) (\(state))")
        }
    }
}

extension PostgresTarget {
    /// Parses the URL of a server to follow.
    ///
    /// - Throws: ``FollowProblem/badURL(_:)``.
    package static func followed(_ url: String) throws(FollowProblem) -> PostgresTarget {
        do {
            return try PostgresTarget(url)
        } catch let bad {
            throw .badURL(bad.reason)
        }
    }
}
