import PostgresLink
import RelayModel
import RelayTestKit
import Storage
import Testing

@testable import StoragePostgreSQL
@testable import StorageSQL

/// Round trips to a real server for courier notifications, client receipts and inboxes.
///
/// Other requests wait meanwhile, so the number of round trips must not grow with the number of
/// rows.
@Suite(
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL is not installed; deploy/test does it"))
struct DeviceRoundTripTests {
    private static let ann: UserID = Sample.identifier("ann")

    /// Returns a device of ann's with a courier; each number has a token of its own.
    private static func tab(_ number: UInt8) -> Device {
        var device = Sample.device("tab-\(number)", of: "ann", token: number)
        device.gateway = .courier
        device.topic = "courier"
        return device
    }

    private static func delivery(_ number: UInt64, to device: Device) -> CourierDelivery {
        CourierDelivery(
            deliveryID: DeliveryID(UUIDBytes(high: 1, low: number)),
            position: LogPosition(number), container: device.container, owner: device.owner,
            deviceID: device.id, collapseID: number.isMultiple(of: 2) ? "c\(number)" : nil,
            payload: Array("{}".utf8))
    }

    @Test func `notifications of couriers are queued together, each once`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let tabs = (UInt8(1)...20).map { Self.tab($0) }
        for tab in tabs { _ = try await store.createCourier(for: tab, at: Sample.moment(1)) }
        let connection = try test.session().connectAgain(limits: PostgresSession.writingPlans)
        let db = Database(connection)
        try connection.begin()
        // Ten deliveries for each courier, one for a device without a courier, and the first ones
        // again.
        var deliveries = (0..<200).map { Self.delivery(UInt64($0 + 1), to: tabs[$0 % 20]) }
        deliveries.append(Self.delivery(900, to: Self.tab(99)))
        deliveries += deliveries.prefix(20)
        let step = CourierStep(bounds: CourierBounds(count: 4), now: Sample.moment(2))
        let before = connection.pipeline.roundTrips
        let first = try step.queue(deliveries, in: db)
        let second = try step.queue(deliveries, in: db)
        #expect(connection.pipeline.roundTrips - before < 40)
        let queued = (0..<200).map { CourierQueueing.Outcome.queued(tabs[$0 % 20].token) }
        #expect(Array(first.outcomes.prefix(200)) == queued)
        #expect(first.outcomes[200] == .unregistered)
        #expect(first.outcomes.dropFirst(201).allSatisfy { $0 == .known })
        // Each courier keeps the newest four of its ten notifications.
        #expect(first.dropped == 120)
        let known = second.outcomes.filter { $0 == .known }
        #expect(known.count == 220 && second.dropped == 0)
        let waiting = try Int64.fetchAll(
            db,
            sql: """
                SELECT min(position) FROM courierNotification WHERE takenAt IS NULL
                UNION ALL SELECT count(*) FROM courierNotification WHERE takenAt IS NULL
                """)
        #expect(waiting == [121, 80])
        connection.rollBack()
        await store.close()
    }

    @Test func `receipts of a client for many notifications are noted together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.transaction()
        let db = Database(connection)
        let owner = try db.user(Self.ann, of: try db.container(Sample.container))
        let step = ClientReceiptStep(owner: owner, now: Sample.moment(9))
        func marks(_ kind: ClientMark.Kind, device: DeviceID?, at seconds: Int64) -> [ClientMark] {
            (UInt64(1)...200).map { number in
                ClientMark(
                    position: LogPosition(number), device: device, subscriptionSerial: nil,
                    kind: kind, at: Sample.moment(seconds))
            }
        }
        let phone: DeviceID = Sample.identifier("phone")
        let before = connection.pipeline.roundTrips
        let delivered = try step.note(
            marks(.delivered, device: phone, at: 3) + marks(.delivered, device: phone, at: 2),
            in: db)
        // A receipt without a device is not reported as repeated, even if it came in the same
        // request.
        let opened = try step.note(
            marks(.opened, device: nil, at: 5) + marks(.opened, device: phone, at: 6), in: db)
        try connection.settle()
        #expect(connection.pipeline.roundTrips - before < 40)
        #expect(delivered.prefix(200).allSatisfy { $0.isNewDelivery })
        #expect(delivered.dropFirst(200).allSatisfy { !$0.isNewDelivery })
        #expect(opened.allSatisfy { !$0.isNewDelivery && $0.isNewOpening })
        #expect(opened.allSatisfy { $0.receipt.deliveredAt == Sample.moment(3) })
        let rows = try Int64.fetchAll(
            db,
            sql: """
                SELECT count(*) FROM clientReceipt
                UNION ALL SELECT count(openedAt) FROM clientReceipt
                """)
        #expect(rows == [400, 400])
        connection.rollBack()
        await store.close()
    }

    @Test func `the health of a user's subscriptions is read together`() async throws {
        let test = try TestPlace()
        let store = try await test.storeWithContainer()
        let connection = try test.session().connectAgain(limits: PostgresSession.readingLimits)
        let db = Database(connection)
        try connection.begin()
        try db.execute(
            sql: """
                INSERT INTO subscriptionHealth (serial, fired, firedPosition, firedAt)
                SELECT n, n, 1, 1 FROM generate_series(1, 1000) AS n
                """)
        let before = connection.pipeline.roundTrips
        let health = try RelayStore.health(of: Set(UInt64(501)...1500), in: db)
        #expect(connection.pipeline.roundTrips - before < 40)
        #expect(health.count == 500)
        #expect(health.allSatisfy { UInt64($0.value.fired) == $0.key })
        connection.rollBack()
        await store.close()
    }
}
