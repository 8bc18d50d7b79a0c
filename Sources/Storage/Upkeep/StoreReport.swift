package import RelayModel

/// The result of checking a whole store.
package struct StoreReport: Sendable, Hashable {
    /// The problems, one sentence each; empty if there are none.
    package var problems: [String]
    /// The accounts of the containers.
    package var accounts: [DeliveryAccount]
    /// The last position of the log.
    package var head: LogPosition
    /// The position of the progress.
    package var progress: LogPosition
    /// The version of the schema.
    package var schemaVersion: Int

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
