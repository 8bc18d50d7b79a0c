import Gateway
import RelayModel
package import Storage
import Synchronization

extension DeliveryWorker {
    /// Takes deliveries of a range; suspends while the window of ranges is full, or as
    /// many as its pace allows are with the gateway.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, with a part of the batch taken; the
    ///   rest is owed still.
    package func accept(_ batch: RangeBatch) async throws {
        var rest = batch.deliveries[...]
        while !rest.isEmpty {
            try Task.checkCancellation()
            let room = state.withLock {
                min(rest.count, $0.tracker.rangeRoom, $0.rangePace.room)
            }
            let withdrawn = try await withdrawals(amongNew: rest.prefix(room))
            gateway.send(admit(room, of: &rest, batch, withdrawn))
            if !rest.isEmpty { await rangeRoomAppeared.wait() }
        }
        if batch.isLast {
            state.withLock { $0.tracker.finishRange(batch.id, offset: batch.offset) }
            somethingSettled.raise()
        }
    }

    private func admit(
        _ most: Int, of rest: inout ArraySlice<OwedDelivery>, _ batch: RangeBatch,
        _ withdrawn: [DeliveryID: Withdrawal]
    ) -> [PushRequest] {
        let now = now()
        let (requests, taken, tally) = state.withLock { state in
            let count = min(most, state.tracker.rangeRoom, state.rangePace.room)
            var requests: [PushRequest] = []
            for delivery in rest.prefix(count) {
                let ticket = state.tracker.admit(
                    delivery, range: batch.id, offset: batch.offset)
                state.collapses.insert(delivery.delivery)
                let withdrawal = withdrawn.isEmpty ? nil : withdrawn[delivery.delivery.id]
                if let ending = firstEnding(of: delivery, withdrawal, at: now, in: &state) {
                    state.settle(ticket, ending, of: delivery.delivery, at: now)
                } else {
                    state.rangePace.begin()
                    requests.append(PushRequest(delivery.delivery, ticket: ticket))
                }
            }
            return (requests, count, state.takeTally())
        }
        rest.removeFirst(taken)
        meter.count(tally)
        if requests.count < taken { somethingSettled.raise() }
        return requests
    }
}
