package import RelayModel

/// How it stands with a database that is followed.
package struct FollowStatus: Sendable, Hashable {
    /// What is being done.
    package enum State: Sendable, Hashable {
        case connecting
        /// The rows as they were are read; how many so far.
        case takingSnapshot(table: String, rows: UInt64)
        case following
        /// It does not go on, for now or until somebody does something.
        case waiting(FollowProblem)
    }

    package var state = State.connecting
    package var since: Timestamp
    /// Rows that the relay has taken since the start.
    package var rows: UInt64 = 0
    /// Values that were left out of rows that are too large.
    package var valuesLeftOut: UInt64 = 0
    /// Rows that fired nothing, because the relay had newer versions of them already.
    package var rowsOlder: UInt64 = 0
    /// Rows that were too long for the relay, or for a proxy before it, in the form that they have
    /// in a request.
    package var rowsTooLong: UInt64 = 0
    /// The last one of them, by its table and key.
    package var lastTooLong: String?
    /// Transactions that said who makes their changes, and named nobody.
    package var authorsUnread: UInt64 = 0
    /// What the publication leaves out of what happens to rows, as `UPDATE`.
    package var operationsLeftOut: [String] = []
    /// Tables that the publication, or the outbox, lacked for a while, or has otherwise since.
    package var tablesPutBack: [String] = []
    /// Tables that came into the publication, or came back, since the slot was read before the
    /// start, or somewhat earlier.
    package var tablesNew: [String] = []
    /// Up to where the slot is confirmed.
    package var confirmed: PostgresPosition?
    /// When the newest transaction that the relay has was committed.
    package var lastCommit: Timestamp?
    /// What the server's log has beyond what is confirmed, in bytes.
    package var behindBytes: UInt64?
    /// What the server keeps of its log for the slot, or what the outbox takes, in bytes.
    package var retainedBytes: UInt64?
    /// Whether the slot would be missing after a failover, though the server could have standbys
    /// keep a copy of it.
    package var lacksFailover = false
    /// What is said of tables of which the server refuses changes, because of what is published.
    package var refusing: String?
    /// What the server says that should be thought about.
    package var warning: String?

    package init(since: Timestamp) {
        self.since = since
    }
}

extension FollowStatus {
    /// What should be thought about, while it goes on.
    package var concern: String? {
        // Of a table that nobody changes it stays as it is, and must not hide what comes later.
        let said = [refusing, tooLong, otherConcern].compactMap { $0 }
        return said.isEmpty ? nil : said.joined(separator: " ")
    }

    /// What is said of rows that no request could hold.
    private var tooLong: String? {
        guard rowsTooLong > 0 else { return nil }
        return "Rows were too long for the relay or a proxy before it (\(rowsTooLong) so far, the "
            + "last one \(lastTooLong ?? "")): they are parked, or were told without their long "
            + "values. Raise the source's maximumBodyBytes and the proxy's limit; then UPDATE … "
            + "SET id = id tells the row anew."
    }

    private var otherConcern: String? {
        guard rowsOlder > 0 else { return warning ?? putBack }
        return "Rows fired nothing, because the relay has newer versions of them (\(rowsOlder) so "
            + "far): the server was put back to an earlier state, or is another one, or an outbox "
            + "was read before; follow it with a source of another name."
    }

    /// What is said of tables that were not followed for a while: nobody would notice that changes
    /// are missing.
    private var putBack: String? {
        guard !tablesPutBack.isEmpty else { return nil }
        return "Tables were taken out of what is followed and put back, or are followed by other "
            + "rows or columns since (\(Self.some(tablesPutBack))): what was changed in between is "
            + "not told. UPDATE … SET id = id tells all rows of a table anew; then save the source "
            + "as it is, or start the follower again."
    }

    /// What is said of tables that may have been taken out and put back, or are new in it.
    private var new: String? {
        guard !tablesNew.isEmpty else { return nil }
        return "The publication has tables that came into it lately, or came back "
            + "(\(Self.some(tablesNew))): what was changed while they were not in it is not told."
    }

    private static func some(_ tables: [String]) -> String {
        tables.prefix(5).joined(separator: ", ") + (tables.count > 5 ? " and others" : "")
    }

    /// What is said of those who were to be named and are not.
    package var namedNobody: String? {
        guard authorsUnread > 0 else { return nil }
        return "Transactions said who makes their changes in a way that names nobody "
            + "(\(authorsUnread) so far): {\"deviceID\": …, \"userRecordName\": …} is expected."
    }

    /// What the publication leaves out, which somebody may have meant.
    private var leftOut: String? {
        guard !operationsLeftOut.isEmpty else { return nil }
        return "The publication leaves out \(operationsLeftOut.joined(separator: " and ")): "
            + "ALTER PUBLICATION … SET (publish = 'insert, update, delete, truncate') tells all."
    }

    /// What is said of a slot that no standby keeps a copy of.
    private var missedByStandbys: String? {
        guard lacksFailover else { return nil }
        return "The slot is not marked to outlast a failover, and no standby keeps a copy of it: "
            + "while nobody follows, mark it with ALTER_REPLICATION_SLOT … (FAILOVER) over a "
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

    /// One sentence for people; what to do, where something is to be done.
    package var sentence: String {
        switch state {
        case .connecting: warning ?? "Connecting."
        case .takingSnapshot(let table, let rows):
            "Reading the rows as they are: \(table), \(Counted.text(rows, "row")) so far."
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
