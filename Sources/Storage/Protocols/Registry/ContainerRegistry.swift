package import RelayModel

/// The containers of a store, their settings, and their use of quotas.
package protocol ContainerRegistry: Sendable {
    /// Saves a container's settings, whether it exists or not, unless `check` throws.
    ///
    /// `check` is called within the commit, at least once.
    func save(
        _ container: ContainerSettings, at now: Timestamp,
        checking check: @escaping @Sendable () throws -> Void
    ) async throws
    /// Returns the settings of one container, or `nil` if it is unknown.
    func container(_ key: ContainerKey) async throws -> ContainerSettings?
    /// Returns a container's use of its quotas.
    func quotaUse(of container: ContainerKey) async throws -> QuotaUse
    /// The quotas of containers without quotas of their own.
    var quotas: Quotas { get }
    /// Returns all containers, ordered by name and environment.
    func containers() async throws -> [ContainerSettings]
    /// Returns the numbers of a container's devices, parked changes, retries and dead letters, each
    /// counted up to `limit`.
    func rowCounts(
        of container: ContainerKey, limit: Int
    ) async throws -> (devices: Int, parked: Int, retries: Int, deadLetters: Int)
    /// Returns a container's users after `name`, ordered by name, whose names begin with `prefix`.
    func userPage(
        of container: ContainerKey, after name: UserID?, prefix: String, _ bounds: PageBounds
    ) async throws -> Page<UserOverview>
}

/// A user with the numbers of devices and subscriptions.
package struct UserOverview: Sendable, Hashable {
    /// The user.
    package let user: UserID
    /// The number of active devices.
    package let devices: Int
    /// The number of active subscriptions.
    package let subscriptions: Int

    package init(user: UserID, devices: Int, subscriptions: Int) {
        self.user = user
        self.devices = devices
        self.subscriptions = subscriptions
    }
}

extension ContainerRegistry {
    /// Saves a container's settings, whether it exists or not.
    package func save(_ container: ContainerSettings, at now: Timestamp) async throws {
        try await save(container, at: now) {}
    }
}
