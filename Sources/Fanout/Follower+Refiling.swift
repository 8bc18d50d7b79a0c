import RelayModel
import Storage

// What changes have shown may make other keys of a condition the better ones: those subscriptions
// are put into the index again, a few at a time, from what the registry says of them.
extension Follower {
    /// Subscriptions that are filed again after one reading of the log, at most.
    private static let subscriptionsPerRefiling = 64

    /// Files again a few of the subscriptions that the indexes hold for misfiled.
    mutating func refile() async throws {
        guard let registry else { return }
        let misfiled = state.takeMisfiled(most: Self.subscriptionsPerRefiling)
        for (container, serial) in misfiled where state.contains(serial, of: container) {
            let versions = try await registry.subscriptions(
                activeAt: worked, after: serial - 1, limit: 1)
            guard let version = versions.first, version.serial == serial else { continue }
            activate(version)
        }
        if !misfiled.isEmpty { meter.countRefiled(misfiled.count) }
    }
}
