import Delivery
import Gateway
import RelayModel
import RelayTestKit
import Storage
import StorageSQL
import StorageSQLite
import Testing

/// A batch that is longer than the window's room is taken in parts.
///
/// The progress moves between the parts.
@Suite struct BatchTests {
    @Test func `a batch that ends within an entry is taken, even if that entry was passed`()
        async throws
    {
        let bench = try await WorkerBench(window: 1)
        try await bench.run {
            let deliveries = (0..<4).map { Fixtures.delivery(at: 5, $0) }
            // The follower hands a change over in portions, and then reports only the entry before
            // it as finished.
            try await bench.worker.accept(
                OwedBatch(deliveries: deliveries, finished: LogPosition(4)))
            try await bench.worker.accept(
                OwedBatch(deliveries: [Fixtures.delivery(at: 5, 4)], finished: LogPosition(5)))
            #expect(await bench.passed(5))
        }
        #expect(bench.gateway.requests.count == 5)
    }

    @Test func `no delivery is passed before the inbox entries that belong to it`() async throws {
        // The third delivery gets no answer, so that the fourth waits for room.
        let bench = try await WorkerBench(window: 1) { request, _ in
            request.deliveryID == Fixtures.delivery(at: 3).delivery.id ? nil : .accepted
        }
        let owner = InboxOwner(container: Fixtures.container, user: Fixtures.identifier("alice"))
        let entry = InboxEntry(
            owner: owner, position: LogPosition(1), subscriptionSerial: 1,
            subscriptionID: Fixtures.identifier("s1"), database: .public,
            notificationID: UUIDBytes(high: 1, low: 1), originDevice: nil,
            payload: Array("{}".utf8), at: Fixtures.moment)
        try await bench.run {
            let batch = OwedBatch(
                deliveries: (1...4).map { Fixtures.delivery(at: $0) }, finished: LogPosition(4),
                inbox: [entry])
            let handing = Task { try await bench.worker.accept(batch) }
            // Two deliveries are passed, and the inbox entry with the second one.
            #expect(await bench.passed(1))
            let found = try await bench.store.notifications(InboxRequest(owner: owner, limit: 9))
            guard case .page(let list, _, _) = found else {
                Issue.record("\(found)")
                return
            }
            #expect(list.count == 1)
            bench.gateway.follow { _, _ in .accepted }
            for ticket in bench.gateway.unanswered { bench.gateway.answer(ticket, .accepted) }
            try await handing.value
            #expect(await bench.passed(4))
        }
    }
}
