package import RelayModel
import Storage

/// A write request of one caller: a closure that runs inside a commit, and an answer after it.
package struct WriteRequest: Sendable {
    /// The priority: which requests are refused first when much is waiting.
    package enum Lane: Sendable, Hashable {
        /// Input from outside, which can be sent again later.
        case intake
        /// The relay's own work: settling, claims, edits.
        ///
        /// It may use more of the queue than intake.
        case own
    }

    /// The lane.
    package let lane: Lane
    /// The container that the write is for, which takes turns with the others.
    ///
    /// `nil` is the relay itself, which takes turns like a container.
    package let container: ContainerKey?
    /// The number of changes in the request, at least 1.
    package let changes: Int
    /// The approximate size of the request in bytes.
    package let bytes: Int
    /// Whether the request probably appends so much that the requests of others should not share
    /// its commit.
    package let isLarge: Bool
    /// Whether a caller waits for this request.
    ///
    /// Only the last part of a request has a caller, so the end of the others brings no new
    /// request.
    package let answersCaller: Bool
    /// Notes what the request will look up, so that the writer can look it up for many at once.
    ///
    /// `nil` if the request does not append changes alone.
    package let lookAhead: (@Sendable (inout OpenCommit, inout Lookahead) throws -> Void)?
    /// Writes, and returns the closure that answers the caller once everything is durable.
    ///
    /// It may run again in another commit if the first one fails.
    package let perform: @Sendable (inout OpenCommit) throws -> @Sendable () -> Void
    /// Answers the caller with an error.
    package let fail: @Sendable (any Error) -> Void

    /// The number of changes that an edit of a subscription or record counts as, according to the
    /// writer's time for both.
    static let changesPerEdit = 4
    /// The number of records that an edit may look up for a change more, according to the same
    /// time.
    static let lookupsPerChange = 8

    package init(
        lane: Lane, container: ContainerKey?, changes: Int, bytes: Int, isLarge: Bool = false,
        answersCaller: Bool = true,
        lookAhead: (@Sendable (inout OpenCommit, inout Lookahead) throws -> Void)? = nil,
        perform: @escaping @Sendable (inout OpenCommit) throws -> @Sendable () -> Void,
        fail: @escaping @Sendable (any Error) -> Void
    ) {
        self.lane = lane
        self.container = container
        self.changes = changes
        self.bytes = bytes
        self.isLarge = isLarge
        self.answersCaller = answersCaller
        self.lookAhead = lookAhead
        self.perform = perform
        self.fail = fail
    }
}
