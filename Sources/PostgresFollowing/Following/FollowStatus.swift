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
    /// Up to where the slot is confirmed.
    package var confirmed: PostgresPosition?
    /// When the newest transaction that the relay has was committed.
    package var lastCommit: Timestamp?
    /// What the server's log has beyond what is confirmed, in bytes.
    package var behindBytes: UInt64?
    /// What the server keeps of its log for the slot, or what the outbox takes, in bytes.
    package var retainedBytes: UInt64?
    /// What should be thought about, while it goes on.
    package var warning: String?

    package init(since: Timestamp) {
        self.since = since
    }
}

extension FollowStatus {
    /// The word for the state.
    package var word: String {
        switch state {
        case .connecting: "connecting"
        case .takingSnapshot: "snapshot"
        case .following: warning == nil ? "following" : "lagging"
        case .waiting(let problem): problem.code
        }
    }

    /// One sentence for people; what to do, where something is to be done.
    package var sentence: String {
        switch state {
        case .connecting: "Connecting."
        case .takingSnapshot(let table, let rows):
            "Reading the rows as they are: \(table), \(rows) rows so far."
        case .following: warning ?? "Following."
        case .waiting(let problem): problem.advice
        }
    }
}
