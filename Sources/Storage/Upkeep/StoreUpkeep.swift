package import RelayModel

/// What is done beside the walk so that a store stays sound and bounded, and is measured.
package protocol StoreUpkeep: Sendable {
    /// Deletes what has outlived its retention, in portions of at most `portion` rows of a kind.
    ///
    /// What is owed is never deleted, whatever the bounds say.
    func prune(
        _ retention: Retention, at now: Timestamp, portion: Int
    ) async throws -> PrunedCounts
    /// Adds up what the first steps said of subscriptions, in one transaction of a bounded size;
    /// says whether there is more.
    ///
    /// Whoever asks how a subscription fared is told the same before and after. One task at a time.
    func addUpFirings() async throws -> Bool
    /// How much has been said of subscriptions and not been added up since the start, about.
    var firingsNotAddedUp: Int { get }
    /// Forgets records of types that containers keep no more, in about so many transactions of a
    /// bounded size; returns how many records.
    func forgetUnkept(parts: Int) async throws -> Int
    /// Lets the engine look after itself, as it recommends about once an hour.
    func optimize() async throws

    /// The accounts of all containers, of one commit, ordered by name.
    func accounts() async throws -> [DeliveryAccount]
    /// What is owed besides the log.
    func backlog() async throws -> Backlog
    /// What each container owes besides the log.
    func backlogOfContainers() async throws -> [ContainerBacklog]
    /// How much room the store takes.
    var footprint: StoreFootprint { get }

    /// What refuses changes before they would be lost; whoever watches the bounds sets it.
    var gate: IntakeGate { get }
    /// How often quotas were reached.
    var quotaTally: QuotaTally { get }
    /// The rows that were set aside because they cannot be read.
    var unreadable: UnreadableRows { get }
    /// Why every change would be refused for want of room; `nil` if there is some.
    var shortage: String? { get }
    /// Looks whether there is room again where there was none, without changing anything.
    func feelForRoom() async throws
}

extension StoreUpkeep {
    /// Prunes in portions that let appends go on between them.
    package func prune(
        _ retention: Retention, at now: Timestamp
    ) async throws -> PrunedCounts {
        try await prune(retention, at: now, portion: 500)
    }
}
