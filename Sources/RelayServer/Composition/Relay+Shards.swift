import RelayModel
import Storage
import StoragePostgreSQL

extension Relay {
    /// The delay before the answer to the creation of a container.
    ///
    /// By then all relays know the container, so that the caller's next call succeeds at any of
    /// them.
    private static let spreading = Duration.milliseconds(500)

    /// What the routes need of the other shards; `nil` if the store is the only one.
    var shards: ShardAccess? {
        guard let directory = nodeListeners?.answering.shards, let claim else { return nil }
        return ShardAccess(
            own: configuration.storageSchema, standings: { directory.standings },
            elsewhere: { directory.elsewhere },
            creating: { [world] key, make in
                do {
                    try await claim.claiming(key, make)
                } catch let taken as ContainerClaim.Taken {
                    throw APIError(
                        .exists,
                        "the container \(key) already exists in the shard \(taken.schema); change "
                            + "it with PATCH (belfry containers set)")
                }
                try await world.clock.sleep(for: Self.spreading)
            })
    }
}
