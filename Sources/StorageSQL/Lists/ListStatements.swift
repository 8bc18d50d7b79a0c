/// What lists ask for; each is found by an index, in the order of the list.
enum ListStatements {
    /// The container's number, and the position before which the list stands; whosever an entry is,
    /// the order of the log is that of the list.
    static let changes = """
        SELECT \(changeColumns) FROM logEntry
        WHERE +container = ?1 AND position < ?2 AND kind = 1 ORDER BY position DESC
        """

    /// The same, and the first position that is looked at.
    static let changesOfSpan = """
        SELECT \(changeColumns) FROM logEntry
        WHERE +container = ?1 AND position < ?2 AND position >= ?3 AND kind = 1
        ORDER BY position DESC
        """

    /// The container's number, the position before which the list stands, and a record type.
    static let changesOfType = """
        SELECT \(changeColumns) FROM logEntry INDEXED BY logEntryRecord
        WHERE container = ?1 AND recordType = ?3 AND position < ?2 AND kind = 1
        ORDER BY position DESC
        """

    /// The positions alone, which stand in the index; the container's number, a record type, a
    /// name, and how many.
    static let positionsOfRecord = """
        SELECT position FROM logEntry INDEXED BY logEntryRecord
        WHERE container = ?1 AND recordType = ?2 AND recordName = ?3 AND kind = 1
        ORDER BY position DESC LIMIT ?4
        """

    /// The next record type that a container's log has, after one.
    static let nextType = """
        SELECT recordType FROM logEntry INDEXED BY logEntryRecord
        WHERE container = ?1 AND recordType > ?2 AND kind = 1 ORDER BY recordType LIMIT 1
        """

    static let changeColumns = """
        position, appendedAt, source, isStale, body,
            (SELECT reason FROM quarantine WHERE quarantine.position = logEntry.position)
            AS setAside
        """

    /// The container's number, a position and a delivery.
    static let retries = """
        SELECT * FROM retry INDEXED BY retryPosition
        WHERE container = ?1 AND (position, deliveryID) < (?2, ?3)
        ORDER BY position DESC, deliveryID DESC
        """

    /// The same, and a user.
    static let retriesOfUser = """
        SELECT * FROM retry INDEXED BY retryOwner
        WHERE container = ?1 AND owner = ?4 AND (position, deliveryID) < (?2, ?3)
        ORDER BY position DESC, deliveryID DESC
        """

    /// The container's number, a moment after which they end, and how many.
    static let sessions = """
        SELECT userSession.*, user.name AS ownerName
        FROM userSession INDEXED BY userSessionStarted
        CROSS JOIN user ON user.id = userSession.owner
        WHERE userSession.container = ?1 AND endsAt > ?2
        ORDER BY startedAt DESC, userSession.id LIMIT ?3
        """

    /// The same, and a user; a quota bounds how many theirs are.
    static let sessionsOfUser = """
        SELECT userSession.*, user.name AS ownerName
        FROM user CROSS JOIN userSession INDEXED BY userSessionOwner
            ON userSession.owner = user.id
        WHERE user.container = ?1 AND user.name = ?4 AND endsAt > ?2
        ORDER BY startedAt DESC, userSession.id LIMIT ?3
        """

    /// The container's number, a moment and a delivery.
    static let letters = """
        SELECT * FROM deadLetter INDEXED BY deadLetterContainer
        WHERE container = ?1 AND (endedAt, deliveryID) < (?2, ?3)
        ORDER BY endedAt DESC, deliveryID DESC
        """

    /// The same, and a user.
    static let lettersOfUser = """
        SELECT * FROM deadLetter INDEXED BY deadLetterOwner
        WHERE container = ?1 AND owner = ?4 AND (endedAt, deliveryID) < (?2, ?3)
        ORDER BY endedAt DESC, deliveryID DESC
        """

    /// The same, and a reason.
    static let lettersOfReason = """
        SELECT * FROM deadLetter INDEXED BY deadLetterReason
        WHERE container = ?1 AND reason = ?4 AND (endedAt, deliveryID) < (?2, ?3)
        ORDER BY endedAt DESC, deliveryID DESC
        """

    /// Those of one change: the container's number, and a position.
    static func ofChange(_ table: String) -> String {
        "SELECT * FROM \(table) INDEXED BY \(table)Position WHERE container = ? AND position = ?"
    }

    /// The container's number, and a serial before which the list stands.
    static func subscriptions(in dialect: Dialect) -> String {
        newest(of: .subscription, in: dialect)
    }

    /// The live ones of a container.
    ///
    /// PostgreSQL would look for them by their serials among all containers', and pass all that
    /// came since where a container's are old: the order that is asked for has one index alone.
    private static func newest(of table: VersionTable, in dialect: Dialect) -> String {
        let container = "\(table.rawValue).container"
        return switch dialect {
        case .sqlite:
            """
            \(table.select())
            WHERE \(container) = ?1 AND serial < ?2 AND ended IS NULL ORDER BY serial DESC
            """
        case .postgresql:
            """
            \(table.select())
            WHERE (\(container), serial) < (?1, ?2) AND \(container) >= ?1 AND ended IS NULL
            ORDER BY \(container) DESC, serial DESC
            """
        }
    }

    /// The container's number, a serial before which the list stands, and a record type.
    static let subscriptionsOfType = """
        \(VersionTable.subscription.select())
        WHERE subscription.container = ?1 AND recordType = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY serial DESC
        """

    /// A user's; they are bounded by a quota, and sorted.
    static let subscriptionsOfUser = """
        \(VersionTable.subscription.select())
        WHERE subscription.container = ?1 AND owner = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY +serial DESC
        """

    /// The container's number, and a serial before which the list stands.
    static func devices(in dialect: Dialect) -> String { newest(of: .device, in: dialect) }

    /// A user's.
    static let devicesOfUser = """
        \(VersionTable.device.select())
        WHERE device.container = ?1 AND owner = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY serial DESC
        """

    /// Those of one ID; users may have the same.
    static let devicesOfID = """
        \(VersionTable.device.select())
        WHERE device.container = ?1 AND deviceID = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY +serial DESC
        """

    /// The container's number, and a number before which the list stands.
    static let parked = """
        SELECT * FROM parkedChange WHERE container = ?1 AND number < ?2 ORDER BY number DESC
        """

    /// The same, and a source.
    static let parkedOfSource = """
        SELECT * FROM parkedChange
        WHERE container = ?1 AND source = ?3 AND number < ?2 ORDER BY number DESC
        """
}
