package import ChangeSources
import PostgresLink
import Synchronization

/// The state that a follower's thread and its tasks share.
final class FollowMemory: Sendable {
    struct Contents: Sendable {
        var isStopped = false
        /// The number of batches that were handed out and are not in the relay yet.
        var outstanding = 0
        /// The position up to which everything is durably in the relay.
        var confirmed = PostgresPosition.zero
        /// The last row that the relay took; rows up to it that arrive again are left out.
        var last: RowPlace?
        /// The timelines of the log that was followed last, as they were then.
        var timelines: Timelines?
        /// The OID of the publication that was followed.
        var publication: String?
        /// The members of the publication or the outbox so far, by name, including removed ones.
        var members: [String: PublicationMember] = [:]
        /// The permanent problem that the server went back to an earlier state, if it did.
        var wentBack: FollowProblem?
        var hasFollowed = false
        var status: FollowStatus

        /// Whether no batch is being posted or prepared for posting.
        var isIdle: Bool { outstanding == 0 }
    }

    private let contents: Mutex<Contents>
    let wake: PostgresWake

    init(_ status: FollowStatus, wake: PostgresWake) {
        contents = Mutex(Contents(status: status))
        self.wake = wake
    }

    var current: Contents { contents.withLock { $0 } }
    var isStopped: Bool { contents.withLock { $0.isStopped } }
    var isIdle: Bool { contents.withLock { $0.isIdle } }
    var outstanding: Int { contents.withLock { $0.outstanding } }
    var last: RowPlace? { contents.withLock { $0.last } }

    func change(_ body: (inout Contents) -> Void) {
        contents.withLock { body(&$0) }
    }

    /// Notes that the relay has taken all rows of a batch that was handed out.
    func accepted(_ batch: RowBatch) {
        change { $0.outstanding -= 1 }
        confirm(batch)
    }

    /// Notes that the relay has taken all rows of a batch.
    func confirm(_ batch: RowBatch) {
        contents.withLock { contents in
            contents.status.rows += UInt64(batch.rows.count)
            if let last = batch.last { contents.last = max(last, contents.last ?? last) }
            if let end = batch.end { contents.confirmed = max(contents.confirmed, end) }
            if let moment = batch.rows.last?.occurredAt { contents.status.lastCommit = moment }
            // An outbox has no log position.
            if contents.confirmed > .zero { contents.status.confirmed = contents.confirmed }
        }
        wake.signal()
    }

    /// Notes the members of a publication or an outbox.
    ///
    /// A member with another number was removed and added again, or its columns or its condition
    /// were changed. A publication that was created again has only new members, which is noticed
    /// elsewhere.
    func note(_ members: [PublicationMember]) {
        contents.withLock { contents in
            for member in members {
                let known = contents.members.updateValue(member, forKey: member.name)
                guard let known, known.publication == member.publication,
                    known.number != member.number,
                    !contents.status.tablesPutBack.contains(member.name)
                else { continue }
                contents.status.tablesPutBack.append(member.name)
            }
        }
    }

    /// Forgets what was read of a log beyond `place`, because the server no longer has it.
    func goBack(to place: PostgresPosition) {
        contents.withLock { contents in
            contents.confirmed = min(contents.confirmed, place)
            contents.last = nil
        }
    }

    /// Notes which of the rows that the relay took are exceptions.
    func note(_ outcome: RowsTaken) {
        var exceptions = RowExceptions()
        guard exceptions.add(outcome) == nil else { return }
        contents.withLock { [exceptions] contents in
            contents.status.rowsOlder += UInt64(clamping: exceptions.older)
            contents.status.rowsTooLong += UInt64(clamping: exceptions.tooLong.count)
            if let last = exceptions.tooLong.last { contents.status.lastTooLong = last }
        }
    }

    func stop() {
        contents.withLock { $0.isStopped = true }
        wake.signal()
    }
}

/// Rows that are posted together.
package struct RowBatch: Sendable {
    /// How many batches are prepared behind the one that is being posted, if they are full.
    ///
    /// With one alone, a full batch would wait for a small one before it.
    static let mostReady = 2

    package var rows: [FollowedRow] = []
    /// The place of the last row; `nil` in a snapshot.
    var last: RowPlace?
    /// The position up to which the log is complete with these rows, if a transaction ends in the
    /// batch.
    var end: PostgresPosition?
}
