package import RelayModel
import Storage

/// What one caller wants written: a closure that is run inside a commit, and an answer after it.
package struct WriteRequest: Sendable {
    /// Who is refused first when much is waiting.
    package enum Lane: Sendable, Hashable {
        /// What comes from outside, and can come again later.
        case intake
        /// What the relay owes: settling, claims, edits. It has room that intake may not use.
        case own
    }

    /// The lane.
    package let lane: Lane
    /// The container for which it is written, which takes turns with the others.
    ///
    /// `nil` is the relay itself, which takes its turn as one more.
    package let container: ContainerKey?
    /// How many changes it holds, at least 1.
    package let changes: Int
    /// About how many bytes it holds.
    package let bytes: Int
    /// Whether a caller hears of its end; the parts of one request but the last answer nobody, and
    /// bring no new one.
    package let answersCaller: Bool
    /// Writes, and returns what answers the caller once all is durable.
    ///
    /// It may be run again in another commit if the first one did not succeed.
    package let perform: @Sendable (inout OpenCommit) throws -> @Sendable () -> Void
    /// Answers the caller with an error.
    package let fail: @Sendable (any Error) -> Void

    /// For how many changes an edit of a subscription or a record counts, by the time that both
    /// take the writer.
    static let changesPerEdit = 4

    /// Makes a request.
    package init(
        lane: Lane, container: ContainerKey?, changes: Int, bytes: Int, answersCaller: Bool = true,
        perform: @escaping @Sendable (inout OpenCommit) throws -> @Sendable () -> Void,
        fail: @escaping @Sendable (any Error) -> Void
    ) {
        self.lane = lane
        self.container = container
        self.changes = changes
        self.bytes = bytes
        self.answersCaller = answersCaller
        self.perform = perform
        self.fail = fail
    }
}
