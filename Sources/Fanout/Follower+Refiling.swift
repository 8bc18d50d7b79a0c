import RelayModel
import Storage

// The changes that were seen may make other keys of a condition the better ones. Such subscriptions
// are put into the index again, a few at a time, from the registry.
extension Follower {
    /// Files a few subscriptions of all containers again that their indexes report as misfiled,
    /// after `entries` entries of the log.
    ///
    /// The next pushes wait for this. So it takes few after few entries, and a proportional number
    /// after many.
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
