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
        let (requests, taken) = state.withLock { state in
            let count = min(rest.count, state.tracker.rangeRoom, state.rangePace.room)
            let requests = rest.prefix(count).compactMap { delivery -> PushRequest? in
                let ticket = state.tracker.admit(
                    delivery, range: batch.id, offset: batch.offset)
                let ending = ending(of: delivery, attempts: 0, at: now, in: &state)
                guard let ending else {
                    state.rangePace.begin()
                    return PushRequest(delivery.delivery, ticket: ticket)
                }
                state.tracker.settle(ticket, ending)
                return nil
            }
            return (requests, count)
        }
        rest.removeFirst(taken)
        if requests.count < taken { somethingSettled.raise() }
        return requests
    }
}
