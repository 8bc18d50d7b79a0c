package import RelayModel

/// The containers that a store knows, their settings, and what they use of their quotas.
package protocol ContainerRegistry: Sendable {
    /// Saves a container's settings, new or not.
    func save(_ container: ContainerSettings, at now: Timestamp) async throws
    /// The settings of one container; `nil` if it is unknown.
    func container(_ key: ContainerKey) async throws -> ContainerSettings?
    /// What a container has of the things that quotas are about.
    func quotaUse(of container: ContainerKey) async throws -> QuotaUse
    /// What containers may have that set nothing of their own.
    var quotas: Quotas { get }
    /// All containers, ordered by name and environment.
    func containers() async throws -> [ContainerSettings]
    /// How many devices, parked changes, retries and dead letters a container has, each counted up
    /// to `limit`.
    func rowCounts(
        of container: ContainerKey, limit: Int
    ) async throws -> (devices: Int, parked: Int, retries: Int, deadLetters: Int)
}
