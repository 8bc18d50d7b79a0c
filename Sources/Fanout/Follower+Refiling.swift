import RelayModel
import Storage

// What changes have shown may make other keys of a condition the better ones: those subscriptions
// are put into the index again, a few at a time, from what the registry says of them.
extension Follower {
    /// Files again a few of the subscriptions that the indexes hold for misfiled, of all
    /// containers, after `entries` of the log.
    ///
    /// What is pushed next waits for them: so they are few after a few entries, and in proportion
    /// to many.
    mutating func refile(after entries: Int) async throws {
        guard let registry else { return }
        let misfiled = state.takeMisfiled(most: max(16, entries / 4))
        guard !misfiled.isEmpty else { return }
        let versions = try await patience.attempt { try await registry.subscriptions(misfiled) }
        for version in versions
        where state.contains(version.serial, of: version.subscription.container) {
            activate(version)
        }
        meter.countRefiled(misfiled.count)
    }
}
