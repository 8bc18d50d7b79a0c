import RelayModel
import Storage

// What changes have shown may make other keys of a condition the better ones: those subscriptions
// are put into the index again, a few at a time, from what the registry says of them.
extension Follower {
    /// Subscriptions that are filed again after one reading of the log, at most, of all containers:
    /// what is pushed next waits for them.
    private static let subscriptionsPerRefiling = 16

    /// Files again a few of the subscriptions that the indexes hold for misfiled.
    mutating func refile() async throws {
        guard let registry else { return }
        let misfiled = state.takeMisfiled(most: Self.subscriptionsPerRefiling)
        guard !misfiled.isEmpty else { return }
        for version in try await registry.subscriptions(misfiled)
        where state.contains(version.serial, of: version.subscription.container) {
            activate(version)
        }
        meter.countRefiled(misfiled.count)
    }
}
