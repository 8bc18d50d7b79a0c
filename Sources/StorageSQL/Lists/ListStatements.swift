/// The statements of lists.
///
/// Each one uses an index in the order of the list.
enum ListStatements {
    /// Parameters: the container's number, and the position before which the list begins.
    ///
    /// The statement walks the log's order over the entries of all containers.
    static let changes = """
        SELECT \(changeColumns) FROM logEntry
        WHERE +container = ?1 AND position < ?2 AND kind = 1 ORDER BY position DESC
        """

    /// Parameters: as `changes`, and the first position to look at.
    static let changesOfSpan = """
        SELECT \(changeColumns) FROM logEntry
        WHERE +container = ?1 AND position < ?2 AND position >= ?3 AND kind = 1
        ORDER BY position DESC
        """

    /// Parameters: the container's number, the position before which the list begins, and a record
    /// type.
    static let changesOfType = """
        SELECT \(changeColumns) FROM logEntry INDEXED BY logEntryRecord
        WHERE container = ?1 AND recordType = ?3 AND position < ?2 AND kind = 1
        ORDER BY position DESC
        """

    /// Positions only, which the index contains.
    ///
    /// Parameters: the container's number, a record type, a name, and the limit.
    static let positionsOfRecord = """
        SELECT position FROM logEntry INDEXED BY logEntryRecord
        WHERE container = ?1 AND recordType = ?2 AND recordName = ?3 AND kind = 1
        ORDER BY position DESC LIMIT ?4
        """

    /// The next record type in a container's log after a given one.
    static let nextType = """
        SELECT recordType FROM logEntry INDEXED BY logEntryRecord
        WHERE container = ?1 AND recordType > ?2 AND kind = 1 ORDER BY recordType LIMIT 1
        """

    static let changeColumns = """
        position, appendedAt, source, isStale, body,
            (SELECT reason FROM quarantine WHERE quarantine.position = logEntry.position)
            AS setAside
        """

    /// Parameters: the container's number, a position and a delivery ID.
    static let retries = """
        SELECT * FROM retry INDEXED BY retryPosition
        WHERE container = ?1 AND (position, deliveryID) < (?2, ?3)
        ORDER BY position DESC, deliveryID DESC
        """

    /// Parameters: as `retries`, and a user.
    static let retriesOfUser = """
        SELECT * FROM retry INDEXED BY retryOwner
        WHERE container = ?1 AND owner = ?4 AND (position, deliveryID) < (?2, ?3)
        ORDER BY position DESC, deliveryID DESC
        """

    /// Parameters: the container's number, the moment after which the sessions end, and the limit.
    static let sessions = """
        SELECT userSession.*, user.name AS ownerName
        FROM userSession INDEXED BY userSessionStarted
        CROSS JOIN user ON user.id = userSession.owner
        WHERE userSession.container = ?1 AND endsAt > ?2
        ORDER BY startedAt DESC, userSession.id LIMIT ?3
        """

    /// Parameters: as `sessions`, and a user.
    ///
    /// A limit bounds the number of a user's sessions.
    static let sessionsOfUser = """
        SELECT userSession.*, user.name AS ownerName
        FROM user CROSS JOIN userSession INDEXED BY userSessionOwner
            ON userSession.owner = user.id
        WHERE user.container = ?1 AND user.name = ?4 AND endsAt > ?2
        ORDER BY startedAt DESC, userSession.id LIMIT ?3
        """

    /// Parameters: the container's number, a moment and a delivery ID.
    static let letters = """
        SELECT * FROM deadLetter INDEXED BY deadLetterContainer
        WHERE container = ?1 AND (endedAt, deliveryID) < (?2, ?3)
        ORDER BY endedAt DESC, deliveryID DESC
        """

    /// Parameters: as `letters`, and a user.
    static let lettersOfUser = """
        SELECT * FROM deadLetter INDEXED BY deadLetterOwner
        WHERE container = ?1 AND owner = ?4 AND (endedAt, deliveryID) < (?2, ?3)
        ORDER BY endedAt DESC, deliveryID DESC
        """

    /// Parameters: as `letters`, and a reason.
    static let lettersOfReason = """
        SELECT * FROM deadLetter INDEXED BY deadLetterReason
        WHERE container = ?1 AND reason = ?4 AND (endedAt, deliveryID) < (?2, ?3)
        ORDER BY endedAt DESC, deliveryID DESC
        """

    /// Returns the statement for the rows of one change.
    ///
    /// Parameters: the container's number and a position.
    static func ofChange(_ table: String) -> String {
        "SELECT * FROM \(table) INDEXED BY \(table)Position WHERE container = ? AND position = ?"
    }

    /// Returns the statement for subscriptions.
    ///
    /// Parameters: the container's number, and the serial before which the list begins.
    static func subscriptions(in dialect: Dialect) -> String {
        newest(of: .subscription, in: dialect)
    }

    /// Returns the statement for the active versions of a container, newest first.
    ///
    /// PostgreSQL would otherwise walk the serials of all containers, and pass all newer versions
    /// of other containers. The order that is requested here is available from one index only.
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

    /// Parameters: the container's number, the serial before which the list begins, and a record
    /// type.
    static let subscriptionsOfType = """
        \(VersionTable.subscription.select())
        WHERE subscription.container = ?1 AND recordType = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY serial DESC
        """

    /// The subscriptions of one user, which are sorted, because a quota bounds their number.
    ///
    /// Parameters: the container's number, the serial before which the list begins, and the user.
    static let subscriptionsOfUser = """
        \(VersionTable.subscription.select())
        WHERE subscription.container = ?1 AND owner = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY +serial DESC
        """

    /// Returns the statement for devices.
    ///
    /// Parameters: the container's number, and the serial before which the list begins.
    static func devices(in dialect: Dialect) -> String { newest(of: .device, in: dialect) }

    /// The devices of one user.
    ///
    /// Parameters: the container's number, the serial before which the list begins, and the user.
    static let devicesOfUser = """
        \(VersionTable.device.select())
        WHERE device.container = ?1 AND owner = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY serial DESC
        """

    /// The devices with one ID, which several users may have.
    ///
    /// Parameters: the container's number, the serial before which the list begins, and the ID.
    static let devicesOfID = """
        \(VersionTable.device.select())
        WHERE device.container = ?1 AND deviceID = ?3 AND serial < ?2 AND ended IS NULL
        ORDER BY +serial DESC
        """

    /// Parameters: the container's number, and the number before which the list begins.
    static let parked = """
        SELECT * FROM parkedChange WHERE container = ?1 AND number < ?2 ORDER BY number DESC
        """

    /// Parameters: as `parked`, and a source.
    static let parkedOfSource = """
        SELECT * FROM parkedChange
        WHERE container = ?1 AND source = ?3 AND number < ?2 ORDER BY number DESC
        """
}
