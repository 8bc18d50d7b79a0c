package import RelayModel

/// The containers that a store knows, their settings, and what they use of their quotas.
package protocol ContainerRegistry: Sendable {
    /// Saves a container's settings, new or not, unless `check` throws: it is asked within the
    /// commit, once or more.
    func save(
        _ container: ContainerSettings, at now: Timestamp,
        checking check: @escaping @Sendable () throws -> Void
    ) async throws
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
    /// The users that a container knows, by name, after `name`; those whose names begin with
    /// `prefix`.
    func userPage(
        of container: ContainerKey, after name: UserID?, prefix: String, _ bounds: PageBounds
    ) async throws -> Page<UserOverview>
}

/// A user, with how much they have.
package struct UserOverview: Sendable, Hashable {
    /// The user.
    package let user: UserID
    /// Active devices.
    package let devices: Int
    /// Active subscriptions.
    package let subscriptions: Int

    package init(user: UserID, devices: Int, subscriptions: Int) {
        self.user = user
        self.devices = devices
        self.subscriptions = subscriptions
    }
}

extension ContainerRegistry {
    /// Saves a container's settings, new or not.
    package func save(_ container: ContainerSettings, at now: Timestamp) async throws {
        try await save(container, at: now) {}
    }
}
