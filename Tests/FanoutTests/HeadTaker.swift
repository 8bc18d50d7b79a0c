import Fanout
import RelayModel
import Storage
import StorageSQL

/// Takes what a follower hands over until it has come to the head of the log.
actor HeadTaker {
    /// Ends a follower, which would wait at the head.
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
    /// What the follower that `make` makes hands over from the beginning of the log to its head.
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
    /// The positions of the changes by which its deliveries are owed, in order, one for each.
    var deliveredPositions: [String] {
        deliveries.map { "\($0.delivery.ordinal.position)" }
    }
}
