import Fanout
import RelayModel
import Storage
import StorageSQL

/// Collects what a follower hands over until it has reached the head of the log.
actor HeadTaker {
    /// Thrown to end a follower, which would otherwise wait at the head.
    struct Finished: Error {}

    private let head: LogPosition
    private(set) var batches: [OwedBatch] = []

    init(head: LogPosition) {
        self.head = head
    }

    func take(_ batch: OwedBatch) throws {
        batches.append(batch)
        if batch.finished == head { throw Finished() }
    }
}

extension RelayStore {
    /// Returns what the follower of `make` hands over from the beginning of the log to its head.
    func handedOver(
        by make: (_ take: @escaping Follower.Taker) -> Follower
    ) async throws -> [OwedBatch] {
        let taker = HeadTaker(head: try await head())
        var follower = make { try await taker.take($0) }
        try await follower.recover(at: .start, from: self)
        do {
            try await follower.follow(from: .start)
        } catch is HeadTaker.Finished {}
        return await taker.batches
    }
}

extension OwedBatch {
    /// The positions of the changes that owe the deliveries, in order, one for each delivery.
    var deliveredPositions: [String] {
        deliveries.map { "\($0.delivery.ordinal.position)" }
    }
}
