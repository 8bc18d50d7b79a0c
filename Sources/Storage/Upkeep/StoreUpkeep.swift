package import RelayModel

/// The work beside the walk that keeps a store sound and bounded, and its measurements.
package protocol StoreUpkeep: Sendable {
    /// Deletes what has exceeded its retention, in portions of at most `portion` rows of a kind.
    ///
    /// Owed work is never deleted, whatever the retention says.
    func prune(
        _ retention: Retention, at now: Timestamp, portion: Int
    ) async throws -> PrunedCounts
    /// Adds up the oldest firing blocks in one transaction of bounded size, and returns whether
    /// there are more.
    ///
    /// The health of a subscription reads the same before and after. Only one task at a time may
    /// call this.
    func addUpFirings() async throws -> Bool
    /// The approximate number of firings recorded since the start that are not yet added up.
    var firingsNotAddedUp: Int { get }
    /// Deletes records of types that containers no longer keep, in about `parts` transactions of
    /// bounded size, and returns the number of deleted records.
    func forgetUnkept(parts: Int) async throws -> Int
    /// Deletes users whom nothing refers to any more, among the next `count` users after the one
    /// with the number `number`.
    ///
    /// The name of a user is what tokens say. So a user who comes back is the same user as before.
    ///
    /// - Returns: The number after which to go on, or `nil` after the last user; and how many users
    ///   were deleted.
    func pruneUsers(
        after number: Int64, among count: Int
    ) async throws -> (next: Int64?, deleted: Int)
    /// Lets the engine maintain its statistics, as recommended about once an hour.
    func optimize() async throws

    /// Returns the accounts of all containers as of one commit, ordered by name.
    func accounts() async throws -> [DeliveryAccount]
    /// Returns the owed work besides the log.
    func backlog() async throws -> Backlog
    /// Returns the owed work of each container besides the log.
    func backlogOfContainers() async throws -> [ContainerBacklog]
    /// The space that the store takes.
    var footprint: StoreFootprint { get }

    /// The gate that refuses changes at the limits; the code that watches the limits sets it.
    var gate: IntakeGate { get }
    /// The counts of how often quotas were reached.
    var quotaTally: QuotaTally { get }
    /// The rows that were set aside because they cannot be read.
    var unreadable: UnreadableRows { get }
    /// The reason why every change would be refused for lack of space; `nil` if there is enough.
    var shortage: String? { get }
    /// Checks whether there is space again after a shortage, without changing anything.
    func feelForRoom() async throws
}

extension StoreUpkeep {
    /// Prunes in portions that let appends proceed between them.
    package func prune(
        _ retention: Retention, at now: Timestamp
    ) async throws -> PrunedCounts {
        try await prune(retention, at: now, portion: 500)
    }
}
