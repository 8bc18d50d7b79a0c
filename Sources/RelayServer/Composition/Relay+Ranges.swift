import Delivery
import Fanout
import RelayModel
import Storage
import StorageSQLite

extension Relay {
    /// Works the ranges of huge fan-outs beside the follower, until the task is cancelled.
    func workRanges() async throws {
        for await _ in recovered.stream { break }
        var ranges = RangeWorker(
            log: store, ranges: store, identity: DeliveryIdentity(store: store.storeIdentity),
            badges: badges, settings: { [directory] key in directory[key] }, logger: logger,
            now: world.now, clock: world.clock,
            take: { [worker] batch in try await worker.accept(batch) })
        try await ranges.run()
    }

    /// What is done beside the walk.
    func upkeep() -> Upkeep {
        Upkeep(
            store, settings: configuration.upkeep, world: world, logger: logger,
            progress: { [worker] in worker.recordedMark.position })
    }
}
