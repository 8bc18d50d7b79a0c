package import RelayModel

/// The state of a followed database.
package struct FollowStatus: Sendable, Hashable {
    /// What the follower is doing.
    package enum State: Sendable, Hashable {
        case connecting
        /// It reads the existing rows; the number of rows so far.
        case takingSnapshot(table: String, rows: UInt64)
        case following
        /// It does not continue, for now or until an operator acts.
        case waiting(FollowProblem)
    }

    package var state = State.connecting
    package var since: Timestamp
    /// The number of rows that the relay has taken since the start.
    package var rows: UInt64 = 0
    /// The number of values that were left out of rows that are too large.
    package var valuesLeftOut: UInt64 = 0
    /// The number of rows that fired nothing, because the relay had newer versions of them already.
    package var rowsOlder: UInt64 = 0
    /// The number of rows that were too long in a request for the relay or for a proxy before it.
    package var rowsTooLong: UInt64 = 0
    /// The table and the key of the last of these rows.
    package var lastTooLong: String?
    /// The number of transactions whose declaration of an author names neither a device nor a user.
    package var authorsUnread: UInt64 = 0
    /// The operations on rows that the publication leaves out, such as `UPDATE`.
    package var operationsLeftOut: [String] = []
    /// The tables that were removed from the publication or the outbox and added again, or changed
    /// in it.
    package var tablesPutBack: [String] = []
    /// The tables that were added to the publication after the slot was last read before the start,
    /// or somewhat earlier.
    package var tablesNew: [String] = []
    /// The position up to which the slot is confirmed.
    package var confirmed: PostgresPosition?
    /// The commit time of the newest transaction that the relay has.
    package var lastCommit: Timestamp?
    /// How much the server's log has beyond the confirmed position, in bytes.
    package var behindBytes: UInt64?
    /// How much of its log the server keeps for the slot, or the size of the outbox, in bytes.
    package var retainedBytes: UInt64?
    /// Whether the slot would be lost in a failover, although the server could have standbys keep a
    /// copy.
    package var lacksFailover = false
    /// The warning about tables whose changes the server refuses because of the publication.
    package var refusing: String?
    /// The warning about the server's state.
    package var warning: String?

    package init(since: Timestamp) {
        self.since = since
    }
}

extension FollowStatus {
    /// The warnings while following continues; `nil` if there are none.
    package var concern: String? {
        // The warning about a table that is never changed may stay for ever, so it must not hide
        // later ones.
        let said = [refusing, tooLong, otherConcern].compactMap { $0 }
        return said.isEmpty ? nil : said.joined(separator: " ")
    }

    /// The warning about rows that were too long; `nil` if there were none.
    private var tooLong: String? {
        guard rowsTooLong > 0 else { return nil }
        return "Rows were too long for the relay or a proxy in front of it (\(rowsTooLong) so far, "
            + "the last one \(lastTooLong ?? "")): they were parked, or taken without their long "
            + "values. Raise the source's maximumBodyBytes and the proxy's limit; then UPDATE … "
            + "SET id = id reports the row again."
    }

    private var otherConcern: String? {
        guard rowsOlder > 0 else { return warning ?? putBack }
        return "Rows fired nothing, because the relay has newer versions of them (\(rowsOlder) so "
            + "far): the server was restored to an earlier state, or is another server, or its "
            + "outbox was read before. Follow it with a source of another name."
    }

    /// The warning about tables that were not followed for a while, whose missing changes would go
    /// unnoticed.
    private var putBack: String? {
        guard !tablesPutBack.isEmpty else { return nil }
        return "Tables were removed from what is followed and added again, or are followed with "
            + "other rows or columns than before (\(Self.some(tablesPutBack))): what was changed "
            + "in between is missing. UPDATE … SET id = id reports all rows of a table again; then "
            + "save the source as it is, or start the follower again."
    }

    /// The remark about tables that are new in the publication, or may have been removed and added
    /// again.
    private var new: String? {
        guard !tablesNew.isEmpty else { return nil }
        return "The publication has tables that were added lately, or added again "
            + "(\(Self.some(tablesNew))): what was changed while they were not in it is missing."
    }

    private static func some(_ tables: [String]) -> String {
        tables.prefix(5).joined(separator: ", ") + (tables.count > 5 ? " and others" : "")
    }

    /// The warning about authors that could not be read.
    package var namedNobody: String? {
        guard authorsUnread > 0 else { return nil }
        return "Transactions stated the author of their changes in a form that cannot be read "
            + "(\(authorsUnread) so far): {\"deviceID\": …, \"userRecordName\": …} is expected."
    }

    /// The remark about operations that the publication leaves out, which may be intended.
    private var leftOut: String? {
        guard !operationsLeftOut.isEmpty else { return nil }
        return "The publication leaves out \(operationsLeftOut.joined(separator: " and ")): ALTER "
            + "PUBLICATION … SET (publish = 'insert, update, delete, truncate') includes all."
    }

    /// The remark about a slot that no standby keeps a copy of.
    private var missedByStandbys: String? {
        guard lacksFailover else { return nil }
        return "The slot is not marked to outlast a failover, so no standby keeps a copy of it: "
            + "while no follower uses it, mark it with ALTER_REPLICATION_SLOT … (FAILOVER) over a "
            + "replication connection."
    }

    /// The word for the state.
    package var word: String {
        switch state {
        case .connecting: "connecting"
        case .takingSnapshot: "snapshot"
        case .following: concern == nil ? "following" : "lagging"
        case .waiting(let problem): problem.code
        }
    }

    /// One sentence about the state, with advice if an operator should act.
    package var sentence: String {
        switch state {
        case .connecting: warning ?? "Connecting."
        case .takingSnapshot(let table, let rows):
            "Reading the snapshot of the rows: \(table), \(Counted.text(rows, "row")) so far."
                + (concern.map { " \($0)" } ?? "")
        case .following:
            concern
                ?? (["Following."]
                + [namedNobody, leftOut, new, missedByStandbys].compactMap { $0 })
                .joined(separator: " ")
        case .waiting(let problem): problem.advice
        }
    }
}
