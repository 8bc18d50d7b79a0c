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
            gateway.send(admit(&rest, of: batch))
            if !rest.isEmpty { await rangeRoomAppeared.wait() }
        }
        if batch.isLast {
            state.withLock { $0.tracker.finishRange(batch.id, offset: batch.offset) }
            somethingSettled.raise()
        }
    }

    private func admit(
        _ rest: inout ArraySlice<OwedDelivery>, of batch: RangeBatch
    ) -> [PushRequest] {
        let now = now()
        let (requests, taken, tally) = state.withLock { state in
            let count = min(rest.count, state.tracker.rangeRoom, state.rangePace.room)
            var requests: [PushRequest] = []
            for delivery in rest.prefix(count) {
                let ticket = state.tracker.admit(
                    delivery, range: batch.id, offset: batch.offset)
                state.collapses.insert(delivery.delivery)
                if let ending = firstEnding(of: delivery, at: now, in: &state) {
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
