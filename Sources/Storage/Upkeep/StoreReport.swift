package import RelayModel

/// What a check of a whole file found.
package struct StoreReport: Sendable, Hashable {
    /// What is wrong, one sentence each; empty if nothing is.
    package var problems: [String]
    /// The accounts of the containers.
    package var accounts: [DeliveryAccount]
    /// The last position of the log.
    package var head: LogPosition
    /// The progress.
    package var progress: LogPosition
    /// The version of the schema.
    package var schemaVersion: Int

    /// Collects what was found.
    package init(
        problems: [String], accounts: [DeliveryAccount], head: LogPosition,
        progress: LogPosition, schemaVersion: Int
    ) {
        self.problems = problems
        self.accounts = accounts
        self.head = head
        self.progress = progress
        self.schemaVersion = schemaVersion
    }
}
