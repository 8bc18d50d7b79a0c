package import ChangeSources
import PostgresLink
import Synchronization

/// What the follower's thread and its tasks share.
final class FollowMemory: Sendable {
    struct Contents: Sendable {
        var isStopped = false
        /// Batches that were handed out and are not in the relay yet.
        var outstanding = 0
        /// Up to where everything is durably in the relay.
        var confirmed = PostgresPosition.zero
        /// The last row that the relay took: what comes again up to it is left out.
        var last: RowPlace?
        /// The log that was followed last, as it was then.
        var timelines: Timelines?
        /// The number of the publication that was followed.
        var publication: String?
        /// What it had, or the outbox, by name: also what is not there now.
        var members: [String: PublicationMember] = [:]
        /// What is wrong with the server for good.
        var wentBack: FollowProblem?
        var hasFollowed = false
        var status: FollowStatus

        /// Whether nothing is being posted, or prepared for it.
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

    /// Notes that the relay has all rows of a batch that was handed out.
    func accepted(_ batch: RowBatch) {
        change { $0.outstanding -= 1 }
        confirm(batch)
    }

    /// Notes that the relay has all rows of a batch.
    func confirm(_ batch: RowBatch) {
        contents.withLock { contents in
            contents.status.rows += UInt64(batch.rows.count)
            if let last = batch.last { contents.last = max(last, contents.last ?? last) }
            if let end = batch.end { contents.confirmed = max(contents.confirmed, end) }
            if let moment = batch.rows.last?.occurredAt { contents.status.lastCommit = moment }
            // An outbox has no such place.
            if contents.confirmed > .zero { contents.status.confirmed = contents.confirmed }
        }
        wake.signal()
    }

    /// Notes what a publication or an outbox has; what it has anew, it lacked for a while, or it
    /// has other columns and rows of it since.
    ///
    /// A publication that was made anew has everything anew, and that is found out elsewhere.
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

    /// Forgets what was read of a log beyond `place`, which the server has not any more.
    func goBack(to place: PostgresPosition) {
        contents.withLock { contents in
            contents.confirmed = min(contents.confirmed, place)
            contents.last = nil
        }
    }

    /// Notes what is to be said of rows that the relay took.
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
    /// How many are made ready behind the one that is being posted, if they fill requests: one
    /// alone would wait for a small one in front of it.
    static let mostReady = 2

    package var rows: [FollowedRow] = []
    /// The place of the last one; `nil` in a snapshot.
    var last: RowPlace?
    /// Up to where the log is complete with them, if a transaction ends in the batch.
    var end: PostgresPosition?
}
